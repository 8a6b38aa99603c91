package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// A limit is declared once and holds for all processes together. A handler acquires
// before it calls the other side; when that takes long, its slot is free meanwhile.
func ExampleAcquire() {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}},
		Limits: []pawl.Limit{{Name: "github", Burst: 100, PerSecond: 1.4}},
		Logger: quiet,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	ctx, stop := context.WithCancel(context.Background())
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		if err := pawl.Acquire(ctx, "github", 1); err != nil {
			return err // given back until the tokens come, or the store is down
		}
		fmt.Println("calling GitHub for", j.Args.UserID)
		stop()
		return nil
	})
	if _, err := e.Enqueue(ctx, Welcome{42}); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: calling GitHub for 42
}

// Outside of handlers Acquire waits, or says when: a web request with a deadline does
// not wait for tokens that come after it.
func ExampleEngine_Acquire() {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Limits: []pawl.Limit{{Name: "sms", Burst: 2, PerSecond: 0.1}}, // two at once, then one in ten seconds
		Logger: quiet,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	for range 3 {
		wait, err := e.Acquire(ctx, "sms", 1)
		switch {
		case errors.Is(err, pawl.ErrRateLimited):
			fmt.Println("try again in", wait.Round(time.Second))
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println("sent")
		}
	}
	// Output:
	// sent
	// sent
	// try again in 10s
}

// The other side has said that it was too much: nobody asks it for a minute.
func ExampleLimitHandle_Drain() {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Limits: []pawl.Limit{{Name: "github", Burst: 100, PerSecond: 1.4}},
		Logger: quiet,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	ctx := pawl.As(context.Background(), "ann", "they answer 429")
	if err := e.Limit("github").Drain(ctx, time.Minute); err != nil {
		log.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = e.Acquire(soon, "github", 1)
	fmt.Println(errors.Is(err, pawl.ErrRateLimited))

	// It can be slower from now on, too.
	if err := e.Limit("github").Set(ctx, pawl.LimitSettings{PerSecond: 0.5}); err != nil {
		log.Fatal(err)
	}
	limits, err := e.Limits(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(limits[0].Name, limits[0].Holds.PerSecond, limits[0].Overridden, limits[0].Note)
	// Output:
	// true
	// github 0.5 [per_second] they answer 429
}
