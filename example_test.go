package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

type Welcome struct {
	UserID int64 `json:"user_id"`
}

func (Welcome) Kind() string { return "welcome" }

type Ship struct{ Order int }

func (Ship) Kind() string { return "ship" }

type Charge struct{ Cents int }

func (Charge) Kind() string { return "charge" }

type Encode struct{ Video int }

func (Encode) Kind() string { return "encode" }

type Video struct{ Seconds int }

type Email struct{ To, Domain string }

func (Email) Kind() string { return "email" }

// quiet is a logger of examples whose handlers fail on purpose.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// newEngine opens an engine in memory for an example.
func newEngine() *pawl.Engine {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}, "mail": {Workers: 10}},
		Logger: quiet,
	})
	if err != nil {
		log.Fatal(err)
	}
	return e
}

// A whole program: open, handle, enqueue, run.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		fmt.Println("welcome", j.Args.UserID, "attempt", j.Attempt)
		stop()
		return nil
	})
	if _, err := e.Enqueue(ctx, Welcome{UserID: 42}); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil { // works until ctx ends, then stops gracefully; nil when clean
		log.Fatal(err)
	}
	// Output: welcome 42 attempt 1
}

func ExampleEngine_Enqueue() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()

	opts := []pawl.EnqueueOption{
		pawl.Queue("mail"), pawl.In(time.Hour), pawl.Priority(2),
		pawl.Unique(pawl.ByKey("user:42")), pawl.Attempts(10),
	}
	first, err := e.Enqueue(ctx, Welcome{42}, opts...)
	if err != nil {
		log.Fatal(err)
	}
	second, err := e.Enqueue(ctx, Welcome{42}, opts...)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Duplicate, second.Duplicate, first.ID == second.ID)
	// Output: false true true
}

// A send whose outcome is unknown is repeated under the same id; it is accepted
// once, also when the job has run meanwhile.
func ExampleWithID() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()

	r, err := e.Enqueue(ctx, Welcome{42})
	if err == nil || errors.Is(err, pawl.ErrOutcomeUnknown) {
		again, err := e.Enqueue(ctx, Welcome{42}, pawl.WithID(r.ID))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(again.ID == r.ID, again.Duplicate)
	}
	// Output: true true
}

func ExampleEngine_EnqueueMany() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()

	rs, err := e.EnqueueMany(ctx, pawl.NewItem(Welcome{1}), pawl.NewItem(Welcome{2}, pawl.In(time.Hour)))
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range rs {
		j, _ := e.Get(ctx, r.ID)
		fmt.Printf("%s %s\n", j.Kind, j.Args)
	}
	// Output:
	// welcome {"user_id":1}
	// welcome {"user_id":2}
}

// Jobs and the user's own rows commit together.
func ExampleEngine_Tx() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()
	if _, err := e.DB().ExecContext(ctx, "create table orders(id integer primary key)"); err != nil {
		log.Fatal(err)
	}

	place := func(order int, fail error) error {
		return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			if _, err := tx.Exec(ctx, "insert into orders(id) values ($1)", order); err != nil {
				return err
			}
			if _, err := tx.Enqueue(ctx, Ship{Order: order}); err != nil {
				return err
			}
			return fail
		})
	}
	fmt.Println(place(7, nil))
	fmt.Println(place(8, errors.New("card declined")))
	n, _ := e.Count(ctx, pawl.Filter{Kind: "ship"}, 0)
	fmt.Println(n.Jobs, "job")
	// Output:
	// <nil>
	// card declined
	// 1 job
}

// A handler can finish its job in the transaction of its effect: exactly once in
// this database.
func ExampleTx_Finish() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()
	if _, err := e.DB().ExecContext(ctx, "create table account(balance integer); insert into account values (1000)"); err != nil {
		log.Fatal(err)
	}

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Charge]) error {
		defer stop()
		return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			if _, err := tx.Exec(ctx, "update account set balance = balance - $1", j.Args.Cents); err != nil {
				return err
			}
			return tx.Finish(j) // effect and completion commit together
		})
	})
	r, err := e.Enqueue(ctx, Charge{Cents: 250})
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	var balance int
	e.DB().QueryRow("select balance from account").Scan(&balance)
	j, _ := e.Get(context.Background(), r.ID)
	fmt.Println(balance, j.State)
	// Output: 750 done
}

func ExampleHandleResult() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	pawl.HandleResult(e, func(ctx context.Context, j *pawl.Job[Encode]) (Video, error) {
		defer stop()
		return Video{Seconds: 90}, nil
	}, pawl.Timeout(time.Minute), pawl.Backoff(pawl.Exponential(time.Second, time.Hour)))
	r, err := e.Enqueue(ctx, Encode{Video: 9})
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	v, err := pawl.Result[Video](context.Background(), e, r.ID)
	fmt.Println(v.Seconds, err)
	// Output: 90 <nil>
}

// Handlers steer by what they return.
func ExampleDead() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		defer stop()
		return pawl.Dead(fmt.Errorf("no such user %d", j.Args.UserID))
	})
	r, err := e.Enqueue(ctx, Welcome{UserID: 42})
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	j, _ := e.Get(context.Background(), r.ID)
	fmt.Println(j.State, j.Failures.List()[0].Message)
	// Output: dead no such user 42
}

// Handlers can be registered without an engine; their faults are joined and
// returned by Run.
func ExampleHandlers() {
	var hs pawl.Handlers
	pawl.Handle(&hs, func(ctx context.Context, j *pawl.Job[Welcome]) error { return nil })
	pawl.Handle[Ship](&hs, nil)
	pawl.Handle(&hs, func(ctx context.Context, j *pawl.Job[Welcome]) error { return nil })

	e := newEngine()
	defer e.Close()
	e.Register(&hs)
	fmt.Println(e.Run(context.Background()))
	// Output:
	// pawl: invalid handler of ship "nil": must be a function
	// pawl: invalid handler "welcome": is registered twice
}

func ExampleHandleBatch() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	pawl.HandleBatch(e, func(ctx context.Context, jobs []*pawl.Job[Email]) []error {
		fmt.Println(len(jobs), "mails to", jobs[0].Args.Domain)
		stop()
		return nil // all done; or one error per job
	}, pawl.Batch[Email]{Size: 3, Key: func(a Email) string { return a.Domain }, Wait: time.Minute})

	_, err := e.EnqueueMany(ctx,
		pawl.NewItem(Email{"ann", "example.com"}),
		pawl.NewItem(Email{"bob", "example.com"}),
		pawl.NewItem(Email{"eve", "example.com"}))
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: 3 mails to example.com
}

func ExampleEngine_Why() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()

	r, err := e.Enqueue(ctx, Welcome{42}, pawl.Queue("mail"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Why(ctx, r.ID))
	e.Queue("mail").Pause(ctx)
	why, err := e.Why(ctx, r.ID) // its sentence says by whom, since when and why
	fmt.Println(why.Code, why.Blocker, err)
	// Output:
	// no live worker serves queue mail <nil>
	// paused queue mail <nil>
}

// Many jobs wait for few things: WhyAll names each of them once.
func ExampleEngine_WhyAll() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()

	var ids []pawl.ID
	for _, queue := range []string{"mail", "video", "mail", "mail"} {
		r, err := e.Enqueue(ctx, Welcome{42}, pawl.Queue(queue))
		if err != nil {
			log.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	e.Queue("mail").Pause(ctx)
	groups, err := e.WhyAll(ctx, ids)
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range groups {
		fmt.Println(len(g.Jobs), g.Why.Code, g.Why.Queue)
	}
	fmt.Println(groups[1].Why)
	// Output:
	// 3 paused mail
	// 1 no_worker video
	// no live worker serves queue video
}
