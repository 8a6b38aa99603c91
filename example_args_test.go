package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Invoice says more about its kind than its name.
type Invoice struct{ Number string }

func (Invoice) Kind() string { return "invoice.send" }

// Defaults hold in every process that enqueues an Invoice.
func (Invoice) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("mail"), pawl.Attempts(10)}
}

// KindAliases are what it was called before: such jobs may still wait.
func (Invoice) KindAliases() []string { return []string{"send_invoice"} }

// Version counts the changes of its fields. Version 0 had a number, not a text.
func (Invoice) Version() int { return 1 }

// The compiler says when one of these is misspelt.
var (
	_ pawl.ArgsWithDefaults = Invoice{}
	_ pawl.ArgsWithAliases  = Invoice{}
	_ pawl.ArgsWithVersion  = Invoice{}
)

// Options of the call go before those of the type.
func ExampleArgsWithDefaults() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()

	for _, opts := range [][]pawl.EnqueueOption{nil, {pawl.Attempts(3)}} {
		r, err := e.Enqueue(ctx, Invoice{"2026-7"}, opts...)
		if err != nil {
			log.Fatal(err)
		}
		j, _ := e.Get(ctx, r.ID)
		fmt.Println(j.Queue, j.MaxAttempts)
	}
	// Output:
	// mail 10
	// mail 3
}

// A job that waits since before the last deploy, of an old kind and with old
// fields, is run by today's handler.
func ExampleUpgrade() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	old := pawl.RawArgs("send_invoice", []byte(`{"Number":7}`))
	if _, err := e.Enqueue(ctx, old); err != nil {
		log.Fatal(err)
	}
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Invoice]) error {
		fmt.Println(j.Kind, j.Args.Number)
		stop()
		return nil
	}, pawl.Upgrade(0, func(args []byte) ([]byte, error) {
		var before struct{ Number int }
		if err := json.Unmarshal(args, &before); err != nil {
			return nil, err
		}
		return json.Marshal(Invoice{fmt.Sprint("2025-", before.Number)})
	}))
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: send_invoice 2025-7
}

// A kind without a Go type: what another system enqueued, or a gateway that
// hands payloads on.
func ExampleHandleRaw() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	pawl.HandleRaw(e, "webhook.github", func(ctx context.Context, j *pawl.Job[pawl.Raw]) error {
		fmt.Printf("%s\n", j.Args)
		stop()
		return nil
	})
	if _, err := e.Enqueue(ctx, pawl.RawArgs("webhook.github", []byte(`{"action":"opened"}`))); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: {"action":"opened"}
}

type traceKey struct{}

// Hooks hand a trace from the caller to the handler and hear of every end.
func ExampleHooks() {
	ctx, stop := context.WithCancel(context.WithValue(context.Background(), traceKey{}, "00-4bf9"))
	defer stop()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 1}},
		Hooks: pawl.Hooks{
			Enqueue: func(ctx context.Context, drafts []pawl.Draft) error {
				for i := range drafts {
					if err := drafts[i].SetHeader("traceparent", ctx.Value(traceKey{}).(string)); err != nil {
						return err
					}
				}
				return nil
			},
			Finish: func(f pawl.Finished) {
				fmt.Println(f.Kind, "is", f.State)
				stop()
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		fmt.Println("trace", j.Headers()["traceparent"])
		return nil
	})
	if _, err := e.Enqueue(ctx, Welcome{UserID: 42}); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// trace 00-4bf9
	// welcome is done
}

// charge is far below the handler and gets a context only.
func charge(ctx context.Context, cents int) error {
	i := pawl.InfoFrom(ctx)
	if len(i.Failures) == 0 {
		return errors.New("card terminal is busy")
	}
	fmt.Printf("attempt %d after %q\n", i.Attempt, i.Failures[0].Message)
	_, err := pawl.EngineFrom(ctx).Enqueue(ctx, Ship{Order: 7})
	return err
}

func ExampleInfoFrom() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Charge]) error { return charge(ctx, j.Args.Cents) },
		pawl.Backoff(pawl.Constant(time.Millisecond)))
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Ship]) error {
		fmt.Println("ship order", j.Args.Order)
		stop()
		return nil
	})
	if _, err := e.Enqueue(ctx, Charge{Cents: 250}); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// attempt 2 after "card terminal is busy"
	// ship order 7
}
