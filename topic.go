package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Topic says what holds for a topic, or for the topics that a pattern names. It is declared
// with the code (Config.Topics), and operators can change it while it runs (TopicHandle.Set).
// A topic needs none: without, it keeps all events and has no versions.
type Topic struct {
	// Name is that of a topic, or a pattern ("orders.*"). Where several name a topic, its own
	// declaration counts, else the most specific: parts are compared from the left, and a
	// name goes before *, and * before >.
	Name string
	// Versioned topics count the events of each key (stream.Event.Version), and a publisher
	// can say which version it expects (Expect). A topic that has been versioned once stays so.
	Versioned bool
	// KeepFor is how long after its append an event is kept [for ever], KeepCount how many of
	// the newest are [all].
	KeepFor   time.Duration
	KeepCount int
}

func (t *Topic) settings() TopicSettings {
	return TopicSettings{Versioned: t.Versioned, KeepFor: t.KeepFor, KeepCount: t.KeepCount}
}

func topicSetting(name string) store.Setting {
	return store.Setting{Kind: store.SettingTopic, Name: name}
}

// checkTopics reports every fault of the declared topics.
func (c *Config) checkTopics() error {
	var errs []error
	seen := map[string]bool{}
	for i := range c.Topics {
		t := &c.Topics[i]
		at := fmt.Sprintf("Config.Topics[%d]", i)
		errs = append(errs, checkTopicName(at+".Name", t.Name))
		if seen[t.Name] {
			errs = append(errs, job.Invalid(at+".Name", t.Name, "must be there once"))
		}
		seen[t.Name] = true
		s := t.settings()
		errs = append(errs, s.Check(at))
	}
	if n := len(c.Topics); n > 0 && n+len(c.Limits)+len(c.Queues)+len(c.Schedules) > store.MaxDeclarations {
		errs = append(errs, job.Invalid("Config.Topics", fmt.Sprintf("%d topics", n),
			fmt.Sprintf("must, with Config.Queues, Limits and Schedules, be at most %d; a pattern names more", store.MaxDeclarations)))
	}
	return errors.Join(errs...)
}

// checkTopicName checks a topic or a pattern that is written out.
func checkTopicName(field, name string) error {
	if name == "" {
		return stream.CheckTopic(field, name)
	}
	_, err := stream.ParsePattern(field, name)
	return err
}

// topicRules are what holds for topics as this process knows it. They are replaced, never
// changed: each publish reads them.
type topicRules struct {
	known *store.Effective // nil before it was read
	own   []ownTopic       // of this process's code, the most specific first
	some  bool             // anything is declared or set
	trims bool             // a topic may keep less than everything

	worked  sync.Map     // what settings worked out, by topic
	keeping atomic.Int32 // how many of them
}

type ownTopic struct {
	pattern  stream.TopicPattern
	settings TopicSettings
}

// topicRulesOf reads what holds, of what is known; nil before that.
func (c *Config) topicRulesOf(known *store.Effective) *topicRules {
	r := &topicRules{known: known}
	for i := range c.Topics {
		if p, err := stream.ParsePattern("topic", c.Topics[i].Name); err == nil {
			r.own = append(r.own, ownTopic{p, c.Topics[i].settings()})
		}
	}
	slices.SortFunc(r.own, func(a, b ownTopic) int { return a.pattern.CompareSpecific(b.pattern) })
	for i := range r.own {
		r.some, r.trims = true, r.trims || r.own[i].settings.Trims()
	}
	if known == nil {
		return r
	}
	for _, s := range known.Settings {
		if s.Kind != store.SettingTopic {
			continue
		}
		var t TopicSettings
		_ = json.Unmarshal(s.Value, &t)
		r.some, r.trims = true, r.trims || t.Trims()
	}
	return r
}

// settings is what holds for a topic. What the code of this process says holds also while
// nobody has declared it: an engine that only publishes declares nothing. Whether a topic is
// versioned its code says in any case, because that only ever becomes so.
func (r *topicRules) settings(name string) TopicSettings {
	if !r.some {
		return TopicSettings{}
	}
	if s, ok := r.worked.Load(name); ok {
		return s.(TopicSettings)
	}
	var own, holds TopicSettings
	if i := slices.IndexFunc(r.own, func(o ownTopic) bool { return o.pattern.Match(name) }); i >= 0 {
		own = r.own[i].settings
	}
	var s store.EffectiveSetting
	if r.known != nil {
		s, _ = r.known.Topic(name)
	}
	if s.Owner == "" {
		holds = own
	}
	if len(s.Value) > 0 {
		_ = json.Unmarshal(s.Value, &holds) // what cannot be read is not set (P8)
	}
	holds.Versioned = holds.Versioned || own.Versioned
	if r.keeping.Load() < maxWorked {
		if _, before := r.worked.LoadOrStore(name, holds); !before {
			r.keeping.Add(1)
		}
	}
	return holds
}

// keep is what topics keep; nil where nothing says that one keeps less than everything.
func (r *topicRules) keep() keeper.TopicKeep {
	if !r.trims {
		return nil
	}
	return r.settings
}

// TopicHandle is one topic, to look at and to operate on.
type TopicHandle struct {
	engine *Engine
	name   string
}

// Topic names a topic to operate on. Set and Reset take a pattern, too ("orders.*"): it holds
// for every topic that it names.
func (e *Engine) Topic(name string) TopicHandle { return TopicHandle{e, name} }

// Set puts the fields that are not zero over what code declares for the topic, in the whole
// cluster and for good: until Reset, also past a deploy. Those that it does not name stay as
// they are. Processes follow within a second.
func (t TopicHandle) Set(ctx context.Context, s TopicSettings) error {
	if err := checkTopicName("topic", t.name); err != nil {
		return err
	}
	if err := s.Check("TopicSettings"); err != nil {
		return err
	}
	value, err := patchOf("TopicSettings", s)
	if err != nil {
		return err
	}
	return t.engine.override(ctx, topicSetting(t.name), value)
}

// Reset takes back what was set: the fields that are named, as JSON names them ("keep_for",
// "keep_count"), else all of them. What code declares holds again.
func (t TopicHandle) Reset(ctx context.Context, fields ...string) error {
	if err := checkTopicName("topic", t.name); err != nil {
		return err
	}
	value, err := takeBack(fields, stream.TopicFields())
	if err != nil {
		return err
	}
	return t.engine.override(ctx, topicSetting(t.name), value)
}

// TopicStatus is how a topic stands: what it has, and what holds for it.
type TopicStatus struct {
	TopicState
	Settings EffectiveTopic
}

// Info says how the topic stands. ErrNotFound where it has had no event and nothing is said
// for it.
func (t TopicHandle) Info(ctx context.Context) (s TopicStatus, err error) {
	if err := stream.CheckTopic("topic", t.name); err != nil {
		return s, err
	}
	reader, ok := t.engine.store.(store.TopicReader)
	if !ok {
		return s, noLog("the store")
	}
	all, err := t.engine.Settings(ctx)
	if err != nil {
		return s, err
	}
	holds, said := all.holds.Topic(t.name)
	s.Settings = effectiveTopic(holds)
	if s.TopicState, err = reader.TopicNamed(ctx, t.name); said && errors.Is(err, ErrNotFound) {
		s.Name, err = t.name, nil
	}
	return s, err
}

// EffectiveTopic is what holds for one topic, or is said for a pattern of topics, and where
// it comes from.
type EffectiveTopic struct {
	Name string
	// Pattern is the one whose declaration holds for a topic that has none of its own.
	Pattern string
	// Holds is what is declared, with the fields over it that operators have set.
	Holds TopicSettings
	// Declared is what code says, and whose it is; empty when none does.
	Declared       TopicSettings
	Owner, Version string
	// Overridden names the fields that operators have set, By, Note and Since who was the
	// last of them.
	Overridden []string
	By, Note   string
	Since      time.Time
	// Conflicts are other owners that declare the topic differently, and do not count.
	Conflicts []Conflict
}

// Topic is what holds for one topic, with what patterns say for it: its own declaration, else
// that of the most specific pattern that names it; over that, field by field, what operators
// have set for such patterns, the more specific over the others, and then for the topic
// itself.
func (s *Settings) Topic(name string) EffectiveTopic {
	holds, _ := s.holds.Topic(name)
	return effectiveTopic(holds)
}

// effectiveTopic shows what holds. What cannot be read is shown as not set (P8).
func effectiveTopic(s store.EffectiveSetting) EffectiveTopic {
	t := EffectiveTopic{
		Name: s.Name, Pattern: s.Pattern, Owner: s.Owner, Version: s.Version, Overridden: s.Overridden, Conflicts: s.Conflicts,
	}
	if s.Override != nil {
		t.By, t.Note, t.Since = s.Override.By, s.Override.Note, s.Override.Since
	}
	if s.Value != nil {
		_ = json.Unmarshal(s.Value, &t.Holds)
	}
	if s.Declared != nil {
		_ = json.Unmarshal(s.Declared, &t.Declared)
	}
	return t
}
