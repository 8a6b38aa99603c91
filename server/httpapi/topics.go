package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/stream"
)

// topics adds the routes of topics.
func (a *api) topics() {
	route(a, operation{
		method: http.MethodGet, path: "/topics", id: "list-topics", tag: "topics", role: auth.Viewer,
		summary: "List topics by name, with the time of their newest event",
	}, a.listTopics)
	route(a, operation{
		method: http.MethodPost, path: "/topics/{name}/events", id: "publish-events", tag: "topics", role: auth.Operator,
		status:  http.StatusCreated,
		summary: "Publish an event, or several: all or none, in order; repeated without a key, it publishes them again",
	}, a.publishEvents)
}

// Topic is a topic that has had an event.
type Topic struct {
	Name   string    `json:"name"`
	Newest time.Time `json:"newest,omitzero" doc:"when its newest event was appended; none where no event is kept any more"`
	// Versioned topics count the events of each key.
	Versioned bool `json:"versioned,omitempty" doc:"its keys have versions"`
}

func topicOf(t *pawl.TopicInfo) Topic { return Topic{t.Name, t.Newest, t.Versioned} }

// TopicList is one page of topics.
type TopicList struct {
	Topics []Topic `json:"topics" nullable:"false"`
	Next   string  `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

type topicsInput struct {
	Paging
	Pattern string `query:"pattern" maxLength:"255" doc:"topics that match: orders.placed, orders.*, orders.>; all without it"`
}

func (a *api) listTopics(ctx context.Context, in *topicsInput) (*body[TopicList], error) {
	var after string
	if err := readCursor(in.After, &after); err != nil {
		return nil, err
	}
	list, err := a.e.Topics(ctx, in.Pattern, after, in.Limit)
	if err != nil {
		return nil, err
	}
	out := TopicList{Topics: wireOf(list, topicOf)}
	if len(list) == in.Limit {
		out.Next = cursor(list[len(list)-1].Name)
	}
	return answer(out), nil
}

// EventDraft is an event that is handed in.
type EventDraft struct {
	Data        json.RawMessage   `json:"data,omitempty" doc:"any JSON value; or data_base64"`
	Base64      []byte            `json:"data_base64,omitempty" doc:"bytes that are no JSON"`
	Key         string            `json:"key,omitempty" maxLength:"255" doc:"order holds among events with the same key"`
	Type        string            `json:"type,omitempty" maxLength:"255" doc:"what the data is of"`
	Source      string            `json:"source,omitempty" maxLength:"255" doc:"who publishes"`
	Headers     map[string]string `json:"headers,omitempty" maxProperties:"64"`
	ContentType string            `json:"content_type,omitempty" maxLength:"255" doc:"of the data; application/json where that is given as data"`
	Correlation string            `json:"correlation,omitempty" maxLength:"255" doc:"what it belongs to"`
	Causation   string            `json:"causation,omitempty" maxLength:"255" doc:"what it follows from"`
	TTL         string            `json:"ttl,omitempty" maxLength:"30" doc:"for how long it is delivered, such as 24h"`
	At          time.Time         `json:"at,omitzero" doc:"when it is appended, by the store's clock; now without it"`
	In          string            `json:"in,omitempty" maxLength:"30" doc:"after which time it is appended, such as 10m; or at"`
	Expect      string            `json:"expect,omitempty" maxLength:"20" doc:"version that its key must have: that of its last event, or none; on versioned topics"`
}

// of is the event, with all its faults.
func (d *EventDraft) of(topic string) (item pawl.EventItem, err error) {
	if d.Data != nil && d.Base64 != nil {
		return item, job.Invalid("data", "given", "must be without data_base64: an event has one of them")
	}
	opts := []pawl.PublishOption{
		pawl.Key(d.Key), pawl.EventType(d.Type), pawl.Source(d.Source), pawl.Correlation(d.Correlation), pawl.Causation(d.Causation),
	}
	if len(d.Headers) > 0 {
		opts = append(opts, pawl.Headers(d.Headers))
	}
	switch {
	case d.ContentType != "":
		opts = append(opts, pawl.ContentType(d.ContentType))
	case d.Data != nil:
		opts = append(opts, pawl.ContentType(stream.JSON))
	}
	if d.TTL != "" {
		ttl, err := readDuration("ttl", d.TTL, 0)
		if err != nil {
			return item, err
		}
		opts = append(opts, pawl.TTL(ttl))
	}
	if opts, err = d.when(opts); err != nil {
		return item, err
	}
	if d.Expect != "" {
		x, err := readExpect(d.Expect)
		if err != nil {
			return item, err
		}
		opts = append(opts, pawl.Expect(x))
	}
	data := pawl.Raw(d.Data)
	if d.Base64 != nil {
		data = d.Base64
	}
	return pawl.NewEvent(topic, data, opts...), nil
}

// when adds when it is appended.
func (d *EventDraft) when(opts []pawl.PublishOption) ([]pawl.PublishOption, error) {
	switch {
	case d.In != "" && !d.At.IsZero():
		return nil, job.Invalid("in", d.In, "must be without at")
	case d.In != "":
		wait, err := readDuration("in", d.In, 0)
		if err != nil {
			return nil, err
		}
		return append(opts, pawl.In(wait)), nil
	case !d.At.IsZero():
		return append(opts, pawl.At(d.At)), nil
	}
	return opts, nil
}

// readExpect reads a version, or none.
func readExpect(text string) (x stream.Expect, err error) {
	if text == none {
		return stream.NoStream(), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return x, job.Invalid("expect", text, "must be none, for a key without events, or the version of its last event, from 1")
	}
	return stream.Version(n), nil
}

// Publication is what is published: the fields of one event, or events.
type Publication struct {
	EventDraft
	Events []EventDraft `json:"events,omitempty" minItems:"1" maxItems:"1000" doc:"several, instead of the other fields"`
}

// Published says where events are.
type Published struct {
	Events []EventReceipt `json:"events" nullable:"false" doc:"in the order in which they were handed in"`
}

// EventReceipt is what became of one event.
type EventReceipt struct {
	ID       string `json:"id"`
	Position string `json:"position,omitempty" doc:"of the event in the log, as after of a list takes it; none while it is delayed"`
	Version  int64  `json:"version,omitempty" doc:"of its key, on versioned topics"`
	Delayed  bool   `json:"delayed,omitempty" doc:"it is accepted, and appended when it is due"`
}

type publishInput struct {
	Name string `path:"name" maxLength:"255" doc:"the topic; a / in it is written %2F"`
	Body Publication
}

func (a *api) publishEvents(ctx context.Context, in *publishInput) (*body[Published], error) {
	drafts := in.Body.Events
	if drafts == nil {
		drafts = []EventDraft{in.Body.EventDraft}
	} else if own, _ := json.Marshal(in.Body.EventDraft); string(own) != "{}" {
		return nil, job.Invalid("events", len(drafts), "must be without the fields of an event beside them")
	}
	items := make([]pawl.EventItem, len(drafts))
	for i := range drafts {
		var err error
		if items[i], err = drafts[i].of(in.Name); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	replies, err := a.e.PublishMany(ctx, items...)
	if err != nil {
		return nil, err
	}
	return answer(Published{wireOf(replies, func(r *stream.PublishReply) EventReceipt {
		return EventReceipt{r.ID, r.Position.String(), r.Version, r.Delayed}
	})}), nil
}
