package stream

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/pawlwork/pawl/job"
)

// Bounds of an event. Those a user may change are fields of [Bounds].
const (
	MaxID         = 255 // bytes of an id or an idempotency key
	MaxKey        = 255 // bytes of a key
	MaxText       = 255 // bytes of a type, a source, a content type, a correlation or a causation
	MaxHeaders    = 64
	MaxHeaderName = 128
	MaxHeaderAll  = 64 << 10 // bytes of all headers
	MaxEvents     = 100_000  // of one PublishMany
	DefaultData   = 4 << 20  // bytes of data
)

// JSON is the content type of events that do not name another.
const JSON = "application/json"

// Bounds are the limits that an engine may set.
type Bounds struct {
	Data int // bytes; 0 means DefaultData
}

// Event is something that has happened.
type Event struct {
	ID      string // unique among those of its source; made where none is given
	Topic   string
	Key     string // order holds among events with the same key; "" is a key, too
	Type    string // what Data is of: typed readers get events of their type only
	Source  string // who says so
	Time    time.Time
	Headers map[string]string

	Data        []byte
	ContentType string // of Data
	Schema      int    // version of the type, for readers of other builds

	Correlation string // what it belongs to
	Causation   string // the event or job that it follows from
	Trace       string // W3C traceparent
	TraceState  string

	Expires time.Time // not delivered after it; zero: never

	// Of the log, once it is there.
	Position Position
	Version  int64     // of its key, from 1, on topics that are declared versioned
	Appended time.Time // by the store's clock
}

// Publication is an event that is not accepted yet, and how it is to be appended.
type Publication struct {
	Event
	// Given says that the caller chose ID: within the window an event with the same id
	// is accepted once.
	Given bool
	// Idempotency is a key that is accepted once within the window, whatever the id.
	Idempotency string
	Expect      Expect
	// Versioned says that its publisher knows the topic to be declared versioned. A topic
	// that has been so once stays so, whoever publishes.
	Versioned bool
	// At is when it is delivered; zero means now. In is the same by the store's clock, when
	// At is zero.
	At time.Time
	In time.Duration
	// TTL sets Expires by the store's clock, from its delivery, when that is zero.
	TTL time.Duration
}

// PublishReply says what became of a draft.
type PublishReply struct {
	ID        string   // of the event; of the one that was there first when Duplicate
	Position  Position // zero while it is delayed, and inside of a transaction
	Version   int64    // of its key, on versioned topics
	Duplicate bool     // nothing was added: the id or the idempotency key was accepted before
	Delayed   bool     // it will be appended when it is due
}

// Check reports everything that is wrong with the draft at once, each with its field, value
// and bound.
func (d *Publication) Check(b Bounds) error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	limit := b.Data
	if limit == 0 {
		limit = DefaultData
	}
	add(CheckTopic("topic", d.Topic))
	add(job.CheckText("id", d.ID, 1, MaxID))
	if len(d.Data) > limit {
		add(job.Invalid("data", fmt.Sprintf("%d bytes", len(d.Data)), fmt.Sprintf("must be at most %d bytes", limit)))
	}
	for _, text := range []struct {
		field, value string
		most         int
	}{
		{"idempotency key", d.Idempotency, MaxID}, {"key", d.Key, MaxKey}, {"type", d.Type, MaxText}, {"source", d.Source, MaxText},
		{"content type", d.ContentType, MaxText}, {"correlation", d.Correlation, MaxText}, {"causation", d.Causation, MaxText},
		{"trace", d.Trace, MaxText}, {"trace state", d.TraceState, 512},
	} {
		if text.value != "" {
			add(job.CheckText(text.field, text.value, 0, text.most))
		}
	}
	if d.Schema < 0 || d.Schema > job.MaxVersion {
		add(job.Invalid("schema", d.Schema, fmt.Sprintf("must be 0..%d", job.MaxVersion)))
	}
	add(checkHeaders(d.Headers))
	add(job.CheckTime("time", d.Time))
	add(job.CheckTime("delivery time", d.At))
	add(job.CheckTime("expiry", d.Expires))
	if d.In < 0 {
		add(job.Invalid("delay", d.In, "must be 0 or more"))
	}
	if d.TTL < 0 {
		add(job.Invalid("time to live", d.TTL, "must be 0 (for ever) or more"))
	}
	if !d.Expires.IsZero() && !d.At.IsZero() && !d.At.Before(d.Expires) {
		add(job.Invalid("expiry", d.Expires, "must be after the delivery time"))
	}
	add(d.Expect.check())
	if !d.Expect.IsAny() && d.delayed() {
		add(job.Invalid("expected version", d.Expect, "cannot be had by an event that is delivered later"))
	}
	return errors.Join(errs...)
}

func (d *Publication) delayed() bool { return !d.At.IsZero() || d.In > 0 }

// Due is when it is to be appended, by the store's clock; zero: now.
func (d *Publication) Due(now time.Time) time.Time {
	switch {
	case d.At.After(now):
		return d.At
	case d.At.IsZero() && d.In > 0:
		return now.Add(d.In)
	}
	return time.Time{}
}

func checkHeaders(h map[string]string) error {
	if len(h) > MaxHeaders {
		return job.Invalid("headers", fmt.Sprintf("%d headers", len(h)), fmt.Sprintf("must be at most %d", MaxHeaders))
	}
	all := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if err := job.CheckText("header name", name, 1, MaxHeaderName); err != nil {
			return err
		}
		if !utf8.ValidString(h[name]) {
			return job.Invalid("header "+name, h[name], "must be valid UTF-8")
		}
		all += len(name) + len(h[name])
	}
	if all > MaxHeaderAll {
		return job.Invalid("headers", fmt.Sprintf("%d bytes", all), fmt.Sprintf("must be at most %d bytes", MaxHeaderAll))
	}
	return nil
}

// Expired reports whether an event is not delivered any more.
func (e *Event) Expired(now time.Time) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) }

// AnyDelayed reports whether some of them may have to wait for their time.
func AnyDelayed(drafts []Publication) bool {
	for i := range drafts {
		if drafts[i].delayed() {
			return true
		}
	}
	return false
}
