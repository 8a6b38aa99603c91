package pawl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Publisher accepts events: an Engine does so in a transaction of its own, a Tx in the
// caller's.
type Publisher interface {
	Publish(ctx context.Context, topic string, data any, opts ...PublishOption) (stream.PublishReply, error)
	PublishMany(ctx context.Context, events ...EventItem) ([]stream.PublishReply, error)
}

var (
	_ Publisher = (*Engine)(nil)
	_ Publisher = (*Tx)(nil)
)

// EventItem is one event of PublishMany. NewEvent makes it.
type EventItem struct {
	topic string
	data  any
	opts  []PublishOption
}

// NewEvent makes one event to hand to PublishMany.
func NewEvent(topic string, data any, opts ...PublishOption) EventItem {
	return EventItem{topic, data, opts}
}

// EventTyper is data that names its type. Data without the method has the name of its Go
// type, without the package: rename that, and readers of the type do not get it any more.
type EventTyper interface{ EventType() string }

// eventBuilder is a stream.Publication on its way to being complete.
type eventBuilder struct {
	*stream.Publication
	errs []error
}

type publishOption func(*eventBuilder)

func (o publishOption) publish(b *eventBuilder) { o(b) }

// EventID gives the event an id of the caller's choice: within 24 hours an event with the
// same id is accepted once in its topic, whoever publishes it.
func EventID(id string) PublishOption {
	return publishOption(func(b *eventBuilder) {
		b.ID, b.Given = id, true
		if id == "" {
			b.errs = append(b.errs, job.Invalid("id", id, "must not be empty"))
		}
	})
}

// Idempotency is a key for which one event is accepted within 24 hours in a topic, whatever
// its id.
func Idempotency(key string) PublishOption {
	return publishOption(func(b *eventBuilder) {
		b.Publication.Idempotency = key
		if key == "" {
			b.errs = append(b.errs, job.Invalid("idempotency key", key, "must not be empty"))
		}
	})
}

// EventType says what the data is of; typed readers get events of their type only. Without
// it the data says so itself (EventTyper), or its Go type does.
func EventType(name string) PublishOption {
	return publishOption(func(b *eventBuilder) { b.Type = name })
}

// Source says who publishes.
func Source(name string) PublishOption {
	return publishOption(func(b *eventBuilder) { b.Publication.Source = name })
}

// EventTime is when it happened; without it, when it is accepted.
func EventTime(t time.Time) PublishOption {
	return publishOption(func(b *eventBuilder) { b.Time = t })
}

// ContentType says what the bytes are; without it JSON, of a codec that is not JSON nothing.
func ContentType(name string) PublishOption {
	return publishOption(func(b *eventBuilder) { b.Publication.ContentType = name })
}

// SchemaVersion is that of the event's type, for readers of other builds.
func SchemaVersion(n int) PublishOption { return publishOption(func(b *eventBuilder) { b.Schema = n }) }

// Correlation says what the event belongs to: a request, an order.
func Correlation(id string) PublishOption {
	return publishOption(func(b *eventBuilder) { b.Publication.Correlation = id })
}

// Causation says what the event follows from: another event, a job.
func Causation(id string) PublishOption {
	return publishOption(func(b *eventBuilder) { b.Publication.Causation = id })
}

// TTL is for how long the event is delivered.
func TTL(d time.Duration) PublishOption {
	return publishOption(func(b *eventBuilder) {
		if d <= 0 {
			b.errs = append(b.errs, job.Invalid("time to live", d, "must be more than 0"))
		}
		b.Publication.TTL = d
	})
}

// Expect says which version the key of the event must have for it to be accepted:
// stream.NoStream for none yet, stream.Version(n) for that of its last event. Another one is
// stream.ErrVersion, and nothing is appended. The topic is declared versioned (Topic).
func Expect(x stream.Expect) PublishOption {
	return publishOption(func(b *eventBuilder) { b.Publication.Expect = x })
}

// Publish hands in an event. When it returns nil the event is on disk, and every reader of
// its topic will see it. A publisher never waits for a reader.
func (e *Engine) Publish(ctx context.Context, topic string, data any, opts ...PublishOption) (stream.PublishReply, error) {
	list, err := e.PublishMany(ctx, EventItem{topic, data, opts})
	if err != nil {
		return stream.PublishReply{}, err
	}
	return list[0], nil
}

// PublishMany hands in events, all or none, in order. There is a reply for each.
func (e *Engine) PublishMany(ctx context.Context, events ...EventItem) ([]stream.PublishReply, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	log, err := e.log()
	if err != nil {
		return nil, err
	}
	drafts, err := e.publications(ctx, events)
	if err != nil {
		return nil, err
	}
	replies, err := log.Append(ctx, drafts)
	if err == nil || errors.Is(err, ErrOutcomeUnknown) {
		e.hub.Ready(publishHints(drafts)...)
	}
	return replies, err
}

// Publish hands in an event that is there when the transaction commits.
func (t *Tx) Publish(ctx context.Context, topic string, data any, opts ...PublishOption) (stream.PublishReply, error) {
	list, err := t.PublishMany(ctx, EventItem{topic, data, opts})
	if err != nil {
		return stream.PublishReply{}, err
	}
	return list[0], nil
}

// PublishMany hands in events in order. Their positions are known when the transaction has
// committed, to who reads them.
func (t *Tx) PublishMany(ctx context.Context, events ...EventItem) ([]stream.PublishReply, error) {
	log, ok := t.tx.(store.TxLog)
	if !ok {
		return nil, noLog("this transaction")
	}
	drafts, err := t.engine.publications(ctx, events)
	if err != nil {
		return nil, err
	}
	replies, err := log.Append(ctx, drafts)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.hints = append(t.hints, publishHints(drafts)...)
	t.mu.Unlock()
	return replies, nil
}

// publishHints say what was published.
func publishHints(drafts []stream.Publication) []store.Hint {
	hints := []store.Hint{{Subject: store.SubjectTopic}}
	if stream.AnyDelayed(drafts) {
		hints = append(hints, store.Hint{Subject: store.SubjectDelay})
	}
	return hints
}

// log is the store as one that keeps events.
func (e *Engine) log() (store.Cursors, error) {
	log, ok := e.store.(store.Cursors)
	if !ok {
		return nil, noLog("the store")
	}
	return log, nil
}

func noLog(who string) error { return fmt.Errorf("%w: %s keeps no events", errors.ErrUnsupported, who) }

// publications completes and checks what is handed in; errors name the event when there are
// several.
func (e *Engine) publications(ctx context.Context, events []EventItem) ([]stream.Publication, error) {
	if len(events) > stream.MaxEvents {
		return nil, job.Invalid("events", len(events), fmt.Sprintf("must be at most %d", stream.MaxEvents))
	}
	if !e.followed.running.Load() {
		e.followed.mirror.Refresh()
	}
	drafts := make([]stream.Publication, len(events))
	var errs []error
	for i := range events {
		if err := e.complete(ctx, &drafts[i], &events[i]); err != nil {
			if len(events) > 1 {
				err = fmt.Errorf("event %d: %w", i, err)
			}
			errs = append(errs, err)
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return drafts, nil
}

// complete makes the publication of an event.
func (e *Engine) complete(ctx context.Context, d *stream.Publication, ev *EventItem) error {
	b := eventBuilder{Publication: d}
	b.Topic, b.Type = ev.topic, eventTypeOf(ev.data)
	switch data := ev.data.(type) {
	case nil:
	case Raw:
		b.Data = data
	default:
		var err error
		if b.Data, err = e.cfg.Codec.Marshal(data); err != nil {
			return fmt.Errorf("event of %s: %w", ev.topic, err)
		}
		if e.cfg.Codec == JSON {
			b.Publication.ContentType = stream.JSON
		}
	}
	for _, o := range ev.opts {
		if o == nil {
			return job.Invalid("option", "nil", "must be one")
		}
		o.publish(&b)
	}
	if b.ID == "" {
		b.ID = job.NewID().String()
	}
	if b.Versioned = e.followed.topics.Load().settings(ev.topic).Versioned; !b.Versioned && !b.Expect.IsAny() {
		if err := e.followed.mirror.Look(ctx); err != nil { // it may have been set just now
			return err
		}
		b.Versioned = e.followed.topics.Load().settings(ev.topic).Versioned
	}
	if err := b.Check(stream.Bounds{Data: e.cfg.Bounds.Event}); err != nil || b.errs != nil {
		return errors.Join(append(b.errs, err)...)
	}
	return nil
}

// eventTypeOf is what data says that it is.
func eventTypeOf(data any) string {
	switch d := data.(type) {
	case nil, Raw:
		return ""
	case EventTyper:
		return d.EventType()
	}
	t := reflect.TypeOf(data)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// Decode reads the data of an event with the engine's codec.
func (e *Engine) Decode(ev stream.Event, into any) error { return e.decode(&ev, into) }

func (e *Engine) decode(ev *stream.Event, into any) error {
	if raw, ok := into.(*Raw); ok {
		*raw = ev.Data
		return nil
	}
	if err := e.cfg.Codec.Unmarshal(ev.Data, into); err != nil {
		return fmt.Errorf("event %s of %s: %w", ev.ID, ev.Topic, err)
	}
	return nil
}
