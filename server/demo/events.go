package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/stream"
)

// Topics of the company. Every tenth order is told as events: the log is not trimmed yet, and
// the demo may run for days.
const (
	topicPlaced  = "orders.placed"
	topicShipped = "orders.shipped"
)

// OrderPlaced is the event of an order that came in.
type OrderPlaced struct {
	Order
}

// OrderShipped is the event of a parcel that left.
type OrderShipped struct {
	Number   int64  `json:"number"`
	Customer string `json:"customer"`
}

func told(number int64) bool { return number%10 == 0 }

func orderKey(number int64) pawl.PublishOption { return pawl.Key(fmt.Sprintf("order-%d", number)) }

// tell publishes the orders that came in.
func (c *Company) tell(ctx context.Context, orders []Order) error {
	var events []pawl.EventItem
	for _, o := range orders {
		if told(o.Number) {
			events = append(events, pawl.NewEvent(topicPlaced, OrderPlaced{o}, orderKey(o.Number), pawl.Source("website")))
		}
	}
	if events == nil {
		return nil
	}
	_, err := c.config.Front.PublishMany(ctx, events...)
	return err
}

// Review is a mail that asks how the parcel was.
type Review struct {
	Number   int64  `json:"number"`
	Customer string `json:"customer"`
}

// Kind is "mail.review".
func (Review) Kind() string { return "mail.review" }

// Defaults puts it into the queue of mails, behind all others.
func (Review) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("mail"), pawl.Priority(8), pawl.In(5 * time.Second)}
}

func (s *shop) review(ctx context.Context, _ *pawl.Job[Review]) error {
	if !pause(ctx, 10*time.Millisecond) {
		return context.Cause(ctx)
	}
	return nil
}

// project reads orders in their order, in one process of the company: for each parcel that left
// one review is asked for, because its job and the cursor's position are one commit.
func (s *shop) project(ctx context.Context, b *pawl.EventBatch) error {
	var errs []error
	for _, ev := range b.Events {
		if ev.Topic != topicShipped {
			continue
		}
		var shipped OrderShipped
		if err := s.engine.Decode(ev, &shipped); err != nil {
			errs = append(errs, err)
			continue
		}
		_, err := b.Tx().Enqueue(ctx, Review(shipped))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// orders is what the projector reads.
var orders = stream.Filter{Topic: "orders.*"}
