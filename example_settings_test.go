package pawl_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// An operator changes a queue while it runs, and takes it back. What code declares
// stays as it is; what was set stands over it, in every process.
func ExampleQueueHandle_Set() {
	e := newEngine()
	defer e.Close()

	ctx := pawl.As(context.Background(), "ann", "the mail server is slow today")
	err := e.Queue("mail").Set(ctx, pawl.QueueSettings{
		Total:   5,
		Backoff: &pawl.BackoffSettings{Base: time.Minute, Max: time.Hour},
	})
	if err != nil {
		log.Fatal(err)
	}
	settings, err := e.Settings(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range settings.Queues {
		fmt.Println(q.Name, q.Holds.Total, q.Overridden, q.By+":", q.Note)
	}

	if err := e.Queue("mail").Reset(ctx, "total"); err != nil { // without names: all of it
		log.Fatal(err)
	}
	settings, err = e.Settings(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.Queues[0].Overridden)
	// Output:
	// mail 5 [backoff total] ann: the mail server is slow today
	// [backoff]
}

// A kind whose handler does harm is stopped in every queue; everything, before work on
// the database. Running jobs go on.
func ExampleKindHandle_Pause() {
	e := newEngine()
	defer e.Close()

	ctx := pawl.As(context.Background(), "ann", "it sends everything twice")
	if err := e.Kind("welcome").Pause(ctx); err != nil {
		log.Fatal(err)
	}
	if err := e.Freeze(ctx); err != nil {
		log.Fatal(err)
	}
	settings, err := e.Settings(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range settings.Pauses {
		fmt.Println(p.Scope, p.Name, p.By)
	}
	if err := e.Unfreeze(ctx); err != nil {
		log.Fatal(err)
	}
	if err := e.Kind("welcome").Resume(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// kind welcome ann
	// all  ann
}

// Patterns serve queues that come later: one for each customer, say.
func ExampleQueues() {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{
			"mail":       {Workers: 10, Total: 40}, // 10 in this process, 40 in the cluster
			"customer.*": {Workers: 2},             // 2 of each customer
			"*":          {Workers: 1},             // whatever else there is
		},
		Logger: quiet,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		fmt.Println("from queue", j.Queue)
		return nil
	})
	if _, err := e.Enqueue(context.Background(), Welcome{42}, pawl.Queue("customer.acme")); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: from queue customer.acme
}

// Upkeep is done as often as it is set, in the whole cluster.
func ExampleEngine_SetUpkeep() {
	e := newEngine()
	defer e.Close()

	ctx := context.Background()
	if err := e.SetUpkeep(ctx, "purge", 10*time.Minute); err != nil { // 0 takes it back
		log.Fatal(err)
	}
	settings, err := e.Settings(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, u := range settings.Upkeep {
		fmt.Println(u.Round, "every", u.Every)
	}
	// Output: purge every 10m0s
}
