package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/stream"
)

// streams opens an engine in memory for an example of groups, which need no queue.
func streams() *pawl.Engine {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	return e
}

// publish hands in orders 1 to n.
func publish(e *pawl.Engine, n int64) {
	for order := range n {
		if _, err := e.Publish(context.Background(), "orders.placed", OrderPlaced{Order: order + 1, Cents: 1999}); err != nil {
			log.Fatal(err)
		}
	}
}

// A group of consumers: every process that subscribes under its name is a member, and each
// event goes to one of them. An error has it come again; after its deliveries it is a dead
// letter on a topic of its own.
func ExampleSubscribe() {
	e := streams()
	defer e.Close()
	ctx, stop := context.WithCancel(context.Background())

	pawl.Subscribe(e, "billing", "orders.*", func(ctx context.Context, m *pawl.Message[OrderPlaced]) error {
		if m.Data.Order == 2 && m.Failures == 0 {
			return errors.New("the bank does not answer") // comes again, later each time
		}
		fmt.Println("bill order", m.Data.Order, "after", m.Failures, "failures")
		if m.Data.Order == 2 {
			stop()
		}
		return nil // done
	}, pawl.InFlight(1), pawl.Backoff(pawl.Constant(time.Millisecond)), pawl.DeadLetter("dead.orders"))

	publish(e, 2)
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// bill order 1 after 0 failures
	// bill order 2 after 1 failures
}

// StepDone is an event of the life of an order.
type StepDone struct{ Step string }

// Events of one key are handled one after another, in their order, whichever members there
// are: what fails keeps those of its key behind it waiting.
func ExampleSubscribe_ordered() {
	e := streams()
	defer e.Close()
	ctx, stop := context.WithCancel(context.Background())

	pawl.Subscribe(e, "tracking", "orders.steps", func(ctx context.Context, m *pawl.Message[StepDone]) error {
		if m.Data.Step == "paid" && m.Failures == 0 {
			return errors.New("not this time")
		}
		fmt.Println(m.Key, m.Data.Step)
		if m.Data.Step == "shipped" {
			stop()
		}
		return nil
	}, pawl.Ordered(), pawl.Backoff(pawl.Constant(time.Millisecond)))

	for _, step := range []string{"placed", "paid", "shipped"} {
		if _, err := e.Publish(ctx, "orders.steps", StepDone{step}, pawl.Key("order-7")); err != nil {
			log.Fatal(err)
		}
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// order-7 placed
	// order-7 paid
	// order-7 shipped
}

// The effect and the acknowledgement are one commit: the bill is there exactly once, also when
// the process dies in between.
func ExampleTx_Ack() {
	e := streams()
	defer e.Close()
	ctx, stop := context.WithCancel(context.Background())
	if _, err := e.DB().ExecContext(ctx, "create table bill(order_id integer, cents integer)"); err != nil {
		log.Fatal(err)
	}

	pawl.Subscribe(e, "billing", "orders.*", func(ctx context.Context, m *pawl.Message[OrderPlaced]) error {
		defer stop()
		return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			if _, err := tx.Exec(ctx, "insert into bill values ($1, $2)", m.Data.Order, m.Data.Cents); err != nil {
				return err
			}
			return tx.Ack(m) // both or none
		})
	})

	publish(e, 1)
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	var bills int
	e.DB().QueryRow("select count(*) from bill").Scan(&bills)
	info, err := e.Group("billing").Info(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bills, "bill,", info.Behind+info.Open+info.Waiting, "events left")
	// Output: 1 bill, 0 events left
}

// What a group has given up, and has no topic for, is parked with it. When the reason is gone
// it is given again, to this group alone.
func ExampleGroup_Replay() {
	e := streams()
	defer e.Close()
	ctx, stop := context.WithCancel(context.Background())

	begun := make(chan struct{}, 1)
	var known atomic.Bool // whether the account is there
	pawl.Subscribe(e, "billing", "orders.*", func(ctx context.Context, m *pawl.Message[OrderPlaced]) error {
		if !known.Load() {
			begun <- struct{}{}
			return m.Reject("no such account") // it would never succeed: no retries
		}
		fmt.Println("bill order", m.Data.Order)
		stop()
		return nil
	})

	placed, err := e.Publish(ctx, "orders.placed", OrderPlaced{Order: 1, Cents: 1999})
	if err != nil {
		log.Fatal(err)
	}
	operator := make(chan struct{})
	go func() {
		defer close(operator)
		<-begun
		ctx, billing := pawl.As(context.Background(), "ann", "the account is there now"), e.Group("billing")
		if err := e.WaitFor(ctx, "billing", placed.Position); err != nil { // what is parked is passed
			log.Fatal(err)
		}
		parked, err := billing.Parked(ctx, pawl.ParkedAfter{}, 10)
		if err != nil {
			log.Fatal(err)
		}
		for _, p := range parked {
			fmt.Println("parked:", p.Event.ID == placed.ID, p.Reason)
		}
		known.Store(true)
		if _, err := billing.Replay(ctx); err != nil { // all of them; or by their positions
			log.Fatal(err)
		}
	}()
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	<-operator
	// Output:
	// parked: true no such account
	// bill order 1
}

// Many events in one call: as many as are there, up to a size. One error for each, in order.
func ExampleSubscribeBatch() {
	e := streams()
	defer e.Close()
	ctx, stop := context.WithCancel(context.Background())

	pawl.SubscribeBatch(e, "totals", "orders.*", func(ctx context.Context, ms []*pawl.Message[OrderPlaced]) []error {
		cents := int64(0)
		for _, m := range ms {
			cents += m.Data.Cents
		}
		fmt.Println(len(ms), "orders,", cents, "cents")
		stop()
		return nil // all are done
	}, pawl.Batch[OrderPlaced]{Size: 100})

	publish(e, 3)
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: 3 orders, 5997 cents
}

// What was published can be read from what a group makes of it, as soon as that has passed it.
func ExampleEngine_WaitFor() {
	e := streams()
	defer e.Close()
	ctx, stop := context.WithCancel(context.Background())

	orders := make(chan int64, 1)
	pawl.Subscribe(e, "view", "orders.*", func(ctx context.Context, m *pawl.Message[OrderPlaced]) error {
		orders <- m.Data.Order
		return nil
	}, pawl.StartAt(stream.FromStart()))

	placed, err := e.Publish(ctx, "orders.placed", OrderPlaced{Order: 7})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		defer stop()
		order := <-orders // the group is there by now
		if err := e.WaitFor(ctx, "view", placed.Position); err != nil {
			log.Fatal(err)
		}
		fmt.Println("order", order, "can be seen")
	}()
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: order 7 can be seen
}
