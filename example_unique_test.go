package pawl_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/pawlwork/pawl"
)

// Sync brings a customer's data up to date.
type Sync struct{ Customer string }

func (Sync) Kind() string { return "sync" }

// A second job is not added while the first one lives, whatever it says.
func ExampleUnique() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()

	first, err := e.Enqueue(ctx, Sync{"acme"}, pawl.Unique(pawl.ByKey("acme")))
	if err != nil {
		log.Fatal(err)
	}
	second, err := e.Enqueue(ctx, Sync{"acme"}, pawl.Unique(pawl.ByKey("acme")), pawl.Priority(1))
	if err != nil {
		log.Fatal(err) // a duplicate is no error
	}
	if second.Duplicate {
		fmt.Println("it is there already:", second.ID == first.ID)
	}
	j, _ := e.Get(ctx, second.ID)
	fmt.Println("priority", j.Priority) // the first one's: a duplicate changes nothing
	// Output:
	// it is there already: true
	// priority 5
}

// HeldFor keeps the place after the job has ended: at most one an hour.
func ExampleHeldFor() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Sync]) error {
		stop()
		return nil
	})
	hourly := pawl.Unique(pawl.ByKey("acme"), pawl.HeldFor(time.Hour))
	first, err := e.Enqueue(ctx, Sync{"acme"}, hourly)
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	ctx = context.Background()
	again, err := e.Enqueue(ctx, Sync{"acme"}, hourly)
	j, _ := e.Get(ctx, first.ID)
	fmt.Println(j.State, again.Duplicate, err)
	// Output: done true <nil>
}
