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

type tenantKey struct{}

// tenants puts the tenant of a job into its context, where code below finds it.
func tenants(next pawl.Work) pawl.Work {
	return func(ctx context.Context, j *pawl.Info) error {
		return next(context.WithValue(ctx, tenantKey{}, j.Headers()["tenant"]), j)
	}
}

// timing tells how long each run took and what it came to.
func timing(next pawl.Work) pawl.Work {
	return func(ctx context.Context, j *pawl.Info) error {
		began := time.Now()
		err := next(ctx, j)
		j.Log().Debug("ran", "took", time.Since(began), "error", err)
		return err
	}
}

// Middleware stands around handlers: around all of them, or around one.
func ExampleMiddleware() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues:     pawl.Queues{"default": {Workers: 1}},
		Middleware: []pawl.Middleware{timing}, // around every handler
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		defer stop()
		fmt.Println("for", ctx.Value(tenantKey{}))
		return nil
	}, pawl.Use(tenants)) // around this one, inside of timing

	if _, err := e.Enqueue(ctx, Welcome{UserID: 42}, pawl.Headers(map[string]string{"tenant": "acme"})); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: for acme
}

// report stands for the client of an error tracker.
func report(kind string, id pawl.ID, attempt int, err error) {
	fmt.Printf("%s failed for good in attempt %d: %v\n", kind, attempt, err)
}

// An error reporter that is told when a job has failed for good.
func ExampleHooks_error() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cfg := pawl.Config{
		Queues:  pawl.Queues{"default": {Workers: 1}},
		Backoff: pawl.Constant(time.Millisecond),
		Logger:  quiet,
		Hooks: pawl.Hooks{
			Error: func(ctx context.Context, j *pawl.Info, err error, final bool) {
				if final { // or every one, with the attempt
					report(j.Kind, j.ID, j.Attempt, err)
				}
			},
		},
	}
	e, err := pawl.New(sqlite.Memory(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Charge]) error {
		if j.Attempt == j.MaxAttempts {
			stop()
		}
		return errors.New("card declined")
	})
	if _, err := e.Enqueue(ctx, Charge{Cents: 250}, pawl.Attempts(3)); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: charge failed for good in attempt 3: card declined
}

// A hook may refuse what is handed in: nothing of the call is accepted.
func ExampleHooks_enqueue() {
	ctx := context.Background()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Hooks: pawl.Hooks{
			Enqueue: func(ctx context.Context, drafts []pawl.Draft) error {
				for i := range drafts {
					if drafts[i].Headers()["tenant"] == "" {
						return fmt.Errorf("%s has no tenant", drafts[i].Kind)
					}
				}
				return nil
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	_, err = e.Enqueue(ctx, Welcome{UserID: 42})
	fmt.Println(err)
	// Output: welcome has no tenant
}
