package pawl_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/stream"
)

// OrderPlaced is an event: something that has happened.
type OrderPlaced struct{ Order, Cents int64 }

// A cursor worker reads events in their order, in one process of the cluster. What its handler
// does in the batch's transaction is there exactly once: it commits with the cursor's position.
func ExampleHandleCursor() {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}, Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	pawl.HandleCursor(e, "welcomes", stream.Filter{Topic: "orders.*"}, func(ctx context.Context, b *pawl.EventBatch) error {
		for _, ev := range b.Events {
			var placed OrderPlaced
			if err := e.Decode(ev, &placed); err != nil {
				return err // it comes again, alone in the end; then it is a dead letter
			}
			if _, err := b.Tx().Enqueue(ctx, Welcome{placed.Order}); err != nil {
				return err
			}
		}
		return nil
	})
	ctx, stop := context.WithCancel(context.Background())
	pawl.Handle(e, func(_ context.Context, j *pawl.Job[Welcome]) error {
		fmt.Println("welcome", j.Args.UserID)
		stop()
		return nil
	})

	if _, err := e.Publish(ctx, "orders.placed", OrderPlaced{Order: 7, Cents: 1999}, pawl.Key("order-7")); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: welcome 7
}

// A cursor of a name goes on where it was committed, in whichever process opens it next.
func ExampleEngine_Cursor() {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	ctx := context.Background()
	for n := range int64(3) {
		if _, err := e.Publish(ctx, "orders.placed", OrderPlaced{Order: n}); err != nil {
			log.Fatal(err)
		}
	}

	c, err := e.Cursor(ctx, "report", stream.Filter{Topic: "orders.placed"})
	if err != nil {
		log.Fatal(err)
	}
	b, err := c.Poll(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(b.Events), "events")
	if err := b.Commit(ctx); err != nil { // or tx.Commit(b), with rows of your own
		log.Fatal(err)
	}

	again, err := e.Cursor(ctx, "report", stream.Filter{Topic: "orders.placed"})
	if err != nil {
		log.Fatal(err)
	}
	rest, err := again.Poll(ctx, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(rest.Events), "left")
	// Output:
	// 2 events
	// 1 left
}
