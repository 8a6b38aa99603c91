package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlwork/pawl"
)

// Order is what a customer has bought.
type Order struct {
	Number   int64  `json:"number"`
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
	VATID    string `json:"vat_id,omitempty"`
	Voucher  string `json:"voucher,omitempty"`
}

// Charge takes the money of an order, and has all else done that it needs.
type Charge struct {
	Order
}

// Kind is "order.charge".
func (Charge) Kind() string { return "order.charge" }

// Defaults puts it into the queue of orders.
func (Charge) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("orders"), pawl.Priority(3), pawl.Attempts(5)}
}

// Ship sends a parcel.
type Ship struct {
	Number   int64  `json:"number"`
	Customer string `json:"customer"`
}

// Kind is "order.ship".
func (Ship) Kind() string { return "order.ship" }

// Defaults puts it into the queue of orders, when the parcel is packed.
func (Ship) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("orders"), pawl.In(3 * time.Second), pawl.Attempts(5)}
}

// What is the matter with an order, by its number.
func (o Order) declined() bool { return o.Number%250 == 13 }
func (o Order) invoiced() bool { return o.Number%10 == 7 }
func (o Order) foreign() bool  { return o.Number%100 == 7 }   // a company that gives no VAT id
func (o Order) voucher() bool  { return o.Number%5000 == 20 } // it is told as an event, too

// newOrder is that of a number.
func newOrder(n int64) Order {
	o := Order{Number: n, Customer: fmt.Sprintf("customer-%d", n%300), Cents: 500 + int(n*7919%20_000)}
	if o.invoiced() && !o.foreign() {
		o.VATID = fmt.Sprintf("DE%09d", n%1_000_000_000)
	}
	if o.voucher() {
		o.Voucher = "SPRING"
	}
	return o
}

func (s *shop) charge(ctx context.Context, j *pawl.Job[Charge]) error {
	if err := pawl.Acquire(ctx, "cards", 1); err != nil {
		return err
	}
	if !pause(ctx, time.Duration(20+rand.IntN(60))*time.Millisecond) {
		return context.Cause(ctx)
	}
	o := j.Args.Order
	if o.declined() {
		return pawl.Dead(errors.New("card declined: insufficient_funds"))
	}
	then := []pawl.Args{Ship{o.Number, o.Customer}, Receipt{o.Number, o.Customer}}
	if o.invoiced() {
		then = append(then, Invoice{o})
	}
	for _, next := range then { // committed with the end of this job, or not at all
		if _, err := j.Then(next); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) send(ctx context.Context, j *pawl.Job[Ship]) error {
	if j.Args.Number%40 == 3 && j.Snoozes == 0 {
		return pawl.SnoozeFor(10*time.Second, "the courier is full and comes again")
	}
	if !pause(ctx, time.Duration(5+rand.IntN(20))*time.Millisecond) {
		return context.Cause(ctx)
	}
	if !told(j.Args.Number) {
		return nil
	}
	_, err := s.engine.Publish(ctx, topicShipped, OrderShipped(j.Args), orderKey(j.Args.Number), pawl.Source("shop"), pawl.Causation(j.ID.String()))
	return err
}
