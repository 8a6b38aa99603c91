package pawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Message is an event in the handler of a group. Ack, Retry and Reject are verdicts: the first
// counts, whatever the handler returns, and takes effect when it does.
type Message[T any] struct {
	stream.Event
	Data     T   // of the event, decoded; Event.Data has its bytes
	Failures int // deliveries before this one that failed
	Losses   int // deliveries whose process was lost

	delivery *consumer.Message
}

// messageOf decodes a delivery. What cannot be decoded is a dead letter, with its bytes.
func messageOf[T any](e *Engine, d *consumer.Message) (*Message[T], bool) {
	m := &Message[T]{Event: *d.Event, Failures: d.Failures, Losses: d.Losses, delivery: d}
	if err := e.decode(d.Event, &m.Data); err != nil {
		_ = d.Reject("its data cannot be decoded: " + err.Error()) // it has no verdict yet
		return nil, false
	}
	return m, true
}

// Ack says that the event is done.
func (m *Message[T]) Ack() error { return m.say(func(d *consumer.Message) error { return d.Ack() }) }

// Retry says that it failed and when it comes again; 0 means at once.
func (m *Message[T]) Retry(reason string, delay time.Duration) error {
	return m.say(func(d *consumer.Message) error { return d.Retry(reason, delay) })
}

// Reject says that it will never succeed: it is a dead letter.
func (m *Message[T]) Reject(reason string) error {
	return m.say(func(d *consumer.Message) error { return d.Reject(reason) })
}

func (m *Message[T]) say(what func(*consumer.Message) error) error {
	if m.delivery == nil {
		return errByHand
	}
	return what(m.delivery)
}

var errByHand = job.Invalid("message", "made by hand", "must be one that a handler was given")

// Delivered is an event in its handler: every *Message is one.
type Delivered interface{ delivered() *consumer.Message }

func (m *Message[T]) delivered() *consumer.Message { return m.delivery }

// feedAcks is a feed that acknowledges in transactions.
type feedAcks interface {
	Ack(ctx context.Context, tx store.TxGroups, ref int64) error
	Unack(ref int64)
}

// Ack acknowledges the handler's event when the transaction commits: effect and
// acknowledgement are there together or not at all, so the effect is there exactly once in
// this database (P3). A member that was taken for dead meanwhile gets stream.ErrFeedLost, and
// its effects roll back. The handler returns nil afterwards.
func (t *Tx) Ack(m Delivered) error {
	if m == nil || m.delivered() == nil {
		return errByHand
	}
	d := m.delivered()
	feed, ok := d.Feed.(feedAcks)
	if !ok {
		return fmt.Errorf("%w: its backend acknowledges in no transaction", errors.ErrUnsupported)
	}
	tx, ok := t.tx.(store.TxGroups)
	if !ok {
		return fmt.Errorf("%w: this transaction keeps no groups", errors.ErrUnsupported)
	}
	if err := d.Open(); err != nil {
		return err
	}
	if err := feed.Ack(t.ctx, tx, d.Ref); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.acks = append(t.acks, d)
	return nil
}

// acked lets messages know of the end of a transaction in which they were acknowledged. Of one
// whose outcome is unknown the store says what became of it, when the handler has returned.
func (t *Tx) acked(err error) {
	t.mu.Lock()
	list := t.acks
	t.acks = nil
	t.mu.Unlock()
	for _, d := range list {
		switch feed, ok := d.Feed.(feedAcks); {
		case err == nil:
			_ = d.Ack() // one that the handler has given another verdict: the store knows better
		case ok && !errors.Is(err, ErrOutcomeUnknown):
			feed.Unack(d.Ref)
		}
	}
}
