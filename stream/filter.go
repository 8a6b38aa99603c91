package stream

import (
	"errors"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Filter chooses events. Zero fields choose all; given ones must all hold.
type Filter struct {
	Topic     string    `json:"topic,omitempty"` // a topic, or a pattern of topics: "orders.*", "orders.>"
	Key       string    `json:"key,omitempty"`
	KeyPrefix string    `json:"key_prefix,omitempty"`
	Type      string    `json:"type,omitempty"`
	Source    string    `json:"source,omitempty"`
	After     time.Time `json:"after,omitzero"`  // the event's own time, not before it
	Before    time.Time `json:"before,omitzero"` // the event's own time, before it
}

// Matcher is a filter that was checked.
type Matcher struct {
	Filter
	Pattern TopicPattern
}

// Matcher checks a filter: all its faults at once.
func (f Filter) Matcher() (Matcher, error) {
	p, err := ParsePattern("Filter.Topic", f.Topic)
	errs := []error{err}
	text := func(field, s string, most int) {
		if s != "" {
			errs = append(errs, job.CheckText(field, s, 0, most))
		}
	}
	text("Filter.Key", f.Key, MaxKey)
	text("Filter.KeyPrefix", f.KeyPrefix, MaxKey)
	text("Filter.Type", f.Type, MaxText)
	text("Filter.Source", f.Source, MaxText)
	errs = append(errs, job.CheckTime("Filter.After", f.After), job.CheckTime("Filter.Before", f.Before))
	if !f.After.IsZero() && !f.Before.IsZero() && !f.After.Before(f.Before) {
		errs = append(errs, job.Invalid("Filter.Before", f.Before, "must be later than Filter.After"))
	}
	if f.Key != "" && !strings.HasPrefix(f.Key, f.KeyPrefix) {
		errs = append(errs, job.Invalid("Filter.KeyPrefix", f.KeyPrefix, "must be a beginning of Filter.Key, or none"))
	}
	f.Topic = p.String()
	return Matcher{f, p}, errors.Join(errs...)
}

// Narrow reports whether more than the topic chooses: not every event of the topics is.
func (m *Matcher) Narrow() bool {
	return m.Key != "" || m.KeyPrefix != "" || m.Type != "" || m.Source != "" || !m.After.IsZero() || !m.Before.IsZero()
}

// Match reports whether an event is chosen.
func (m *Matcher) Match(e *Event) bool {
	return m.Pattern.Match(e.Topic) &&
		(m.Key == "" || m.Key == e.Key) && strings.HasPrefix(e.Key, m.KeyPrefix) &&
		(m.Type == "" || m.Type == e.Type) &&
		(m.Source == "" || m.Source == e.Source) &&
		(m.After.IsZero() || !e.Time.Before(m.After)) &&
		(m.Before.IsZero() || e.Time.Before(m.Before))
}

// Start is where a reader begins that has no position of its own yet.
type Start struct {
	kind startKind
	at   Position
	time time.Time
}

type startKind uint8

const (
	startFirst startKind = iota
	startEnd
	startAt
	startTime
)

// FromStart begins with the oldest event that is kept.
func FromStart() Start { return Start{} }

// FromEnd begins with what is published from now on.
func FromEnd() Start { return Start{kind: startEnd} }

// FromPosition begins behind a position.
func FromPosition(p Position) Start { return Start{kind: startAt, at: p} }

// FromTime begins with what was appended at that time or later, by the store's clock.
func FromTime(t time.Time) Start { return Start{kind: startTime, time: t} }

// IsStart and the others say which of them it is.
func (s Start) IsStart() bool { return s.kind == startFirst || s.kind == startAt && s.at.IsZero() }

// IsEnd reports whether it is FromEnd.
func (s Start) IsEnd() bool { return s.kind == startEnd }

// Position is that of FromPosition.
func (s Start) Position() (Position, bool) { return s.at, s.kind == startAt }

// Time is that of FromTime.
func (s Start) Time() (time.Time, bool) { return s.time, s.kind == startTime }
