package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// topicSettings adds the routes of what holds for topics.
func (a *api) topicSettings() {
	route(a, operation{
		method: http.MethodGet, path: "/topics/{name}", id: "get-topic", tag: "topics", role: auth.Viewer,
		summary: "Read how a topic stands: what it keeps, and what holds for it",
	}, a.getTopic)
	route(a, operation{
		method: http.MethodGet, path: "/topics/{name}/settings", id: "get-topic-settings", tag: "topics", role: auth.Viewer,
		summary: "Read what holds for a topic or a pattern, and where it comes from",
	}, func(ctx context.Context, in *TopicPath) (*body[EffectiveTopic], error) {
		return a.effectiveTopic(ctx, in.Name)
	})
	route(a, operation{
		method: http.MethodPatch, path: "/topics/{name}/settings", id: "set-topic", tag: "topics", role: auth.Operator,
		summary: "Put settings over what code declares for a topic or a pattern",
	}, a.setTopic)
	route(a, operation{
		method: http.MethodDelete, path: "/topics/{name}/settings", id: "reset-topic", tag: "topics", role: auth.Operator,
		summary: "Take back what was set, or some fields of it",
	}, a.resetTopic)
}

// TopicPath names a topic.
type TopicPath struct {
	Name string `path:"name" maxLength:"255" doc:"the topic, or a pattern such as orders.*; a / in it is written %2F"`
}

// TopicSettings are what is declared or set for a topic: the fields that are there.
type TopicSettings struct {
	Versioned *bool  `json:"versioned,omitempty" enum:"true" doc:"keys have versions; a topic that has them once keeps them"`
	KeepFor   string `json:"keep_for,omitempty" minLength:"1" maxLength:"32" doc:"how long after its append an event is kept, such as 720h; none: for ever"`
	KeepCount *int   `json:"keep_count,omitempty" minimum:"-1" maximum:"1000000000000" doc:"how many of the newest are kept; -1: all"`
}

func topicSettingsOf(s *pawl.TopicSettings) TopicSettings {
	return TopicSettings{Versioned: given(s.Versioned), KeepFor: settingTime(s.KeepFor), KeepCount: given(s.KeepCount)}
}

// UnmarshalJSON refuses null.
func (w *TopicSettings) UnmarshalJSON(text []byte) error {
	if err := noNull(text, ""); err != nil {
		return err
	}
	type plain TopicSettings
	return json.Unmarshal(text, (*plain)(w))
}

// of is what was sent, with all its faults.
func (w *TopicSettings) of() (s pawl.TopicSettings, err error) {
	var keepFor, keepCount error
	s.Versioned = w.Versioned != nil
	s.KeepFor, keepFor = readSettingTime("keep_for", w.KeepFor)
	s.KeepCount, keepCount = readSetting("keep_count", w.KeepCount, "must be -1 (all) or 1..1000000000000")
	return s, errors.Join(keepFor, keepCount)
}

// EffectiveTopic is what holds for a topic, or is said for a pattern, and where it comes from.
type EffectiveTopic struct {
	Name     string        `json:"name"`
	Pattern  string        `json:"pattern,omitempty" doc:"the one whose declaration holds for a topic that has none of its own"`
	Holds    TopicSettings `json:"holds" doc:"what is declared, with the fields over it that operators have set"`
	Declared TopicSettings `json:"declared" doc:"what code says"`
	Source
}

func effectiveTopicOf(t *pawl.EffectiveTopic) EffectiveTopic {
	return EffectiveTopic{
		Name: t.Name, Pattern: t.Pattern, Holds: topicSettingsOf(&t.Holds), Declared: topicSettingsOf(&t.Declared),
		Source: sourceOf(t.Owner, t.Version, t.Overridden, t.By, t.Note, t.Since, t.Conflicts),
	}
}

// TopicStatus is how a topic stands.
type TopicStatus struct {
	Topic
	TrimmedTo string         `json:"trimmed_to,omitempty" doc:"position up to which its events were removed; none: all are there"`
	Kept      int64          `json:"kept,omitempty" doc:"how many it has, on topics that keep so many, as far as they were counted"`
	Delayed   int            `json:"delayed,omitempty" doc:"events that wait for their time, 1000 at most"`
	Settings  EffectiveTopic `json:"settings" doc:"what holds for it"`
}

func (a *api) getTopic(ctx context.Context, in *TopicPath) (*body[TopicStatus], error) {
	t, err := a.e.Topic(in.Name).Info(ctx)
	if err != nil {
		return nil, err
	}
	return answer(TopicStatus{
		Topic: topicOf(&t.TopicInfo), TrimmedTo: t.Low.String(), Kept: t.Kept, Delayed: min(t.Delayed, store.MaxDelayedCount),
		Settings: effectiveTopicOf(&t.Settings),
	}), nil
}

func (a *api) effectiveTopic(ctx context.Context, name string) (*body[EffectiveTopic], error) {
	if _, err := stream.ParsePattern("topic", name); err != nil {
		return nil, err
	}
	s, err := a.e.Settings(ctx)
	if err != nil {
		return nil, err
	}
	holds := s.Topic(name)
	return answer(effectiveTopicOf(&holds)), nil
}

type setTopicInput struct {
	TopicPath
	Body TopicSettings
}

func (a *api) setTopic(ctx context.Context, in *setTopicInput) (*body[EffectiveTopic], error) {
	s, err := in.Body.of()
	if err != nil {
		return nil, err
	}
	if err := a.e.Topic(in.Name).Set(ctx, s); err != nil {
		return nil, err
	}
	return a.effectiveTopic(ctx, in.Name)
}

type resetTopicInput struct {
	TopicPath
	Fields []string `query:"field" maxItems:"3" enum:"versioned,keep_for,keep_count" doc:"all without it"`
}

func (a *api) resetTopic(ctx context.Context, in *resetTopicInput) (*body[EffectiveTopic], error) {
	if err := a.e.Topic(in.Name).Reset(ctx, in.Fields...); err != nil {
		return nil, err
	}
	return a.effectiveTopic(ctx, in.Name)
}
