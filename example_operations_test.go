package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawlwork/pawl"
)

// A bad deploy has killed jobs. An operator looks, foresees what a retry would do,
// retries all of them at a pace that leaves the workers room, and reads in the audit
// log who did what.
func ExampleEngine_Bulk() {
	e := newEngine()
	defer e.Close()
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error { return pawl.Dead(errors.New("no template")) })
	for user := range int64(250) {
		if _, err := e.Enqueue(context.Background(), Welcome{user}, pawl.Queue("mail")); err != nil {
			log.Fatal(err)
		}
	}
	runUntilDead(e, 250)

	ctx := pawl.As(context.Background(), "ann", "the template is back")
	broken := pawl.Filter{Kind: "welcome", States: []pawl.State{pawl.StateDead}}

	would, err := e.Bulk(ctx, pawl.BulkRetry(broken), pawl.DryRun())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("would retry", would.Counts.Changed)

	op, err := e.Bulk(ctx, pawl.BulkRetry(broken), pawl.Pace(1000)) // returns at once
	if err != nil {
		log.Fatal(err)
	}
	if op, err = e.WaitOperation(ctx, op.ID); err != nil {
		log.Fatal(err)
	}
	fmt.Println(op.State, op.Counts.Changed, "by", op.By)

	entries, err := e.Audit(ctx, pawl.AuditFilter{Target: op.ID.String()}, pawl.AuditPage{})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range entries.Entries {
		fmt.Println(a.By+":", a.Action, "("+a.Note+")")
	}
	// Output:
	// would retry 250
	// done 250 by ann
	// ann: end bulk retry (the template is back)
	// ann: start bulk retry (the template is back)
}

// runUntilDead works until so many jobs have died.
func runUntilDead(e *pawl.Engine, jobs int) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for range look.C {
		n, err := e.Count(ctx, pawl.Filter{States: []pawl.State{pawl.StateDead}}, 0)
		if err != nil {
			log.Fatal(err)
		}
		if n.Jobs == jobs {
			break
		}
	}
	stop()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
}

// One job waits in the wrong queue, behind others, until tomorrow. It is wanted now.
func ExampleEngine_RunNow() {
	e := newEngine()
	defer e.Close()
	ctx := pawl.As(context.Background(), "ann", "the customer is on the phone")
	r, err := e.Enqueue(ctx, Welcome{42}, pawl.Queue("mial"), pawl.In(24*time.Hour))
	if err != nil {
		log.Fatal(err)
	}

	moved, err := e.Requeue(ctx, r.ID, "mail")
	if err != nil {
		log.Fatal(err)
	}
	raised, err := e.SetPriority(ctx, r.ID, 1)
	if err != nil {
		log.Fatal(err)
	}
	now, err := e.RunNow(ctx, r.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(moved, raised, now)

	entries, err := e.Audit(ctx, pawl.AuditFilter{Target: r.ID.String()}, pawl.AuditPage{})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range entries.Entries {
		fmt.Println(a.Action+":", a.Detail)
	}
	// Output:
	// changed changed changed
	// run now: first of queue mail, priority 1
	// set priority: priority 5 → 1
	// requeue: queue mial → mail
}

// Before work on the database everything stops; what is due is done by hand after it.
func ExampleEngine_Freeze() {
	e := newEngine()
	defer e.Close()

	ctx := pawl.As(context.Background(), "ann", "moving the database")
	if err := e.Freeze(ctx); err != nil { // running jobs go on, and jobs are accepted
		log.Fatal(err)
	}
	if err := e.Unfreeze(ctx); err != nil {
		log.Fatal(err)
	}
	for _, round := range []string{"rescue", "expire", "operations", "purge"} {
		report, err := e.Upkeep(ctx, round)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(report.Round, report.Total())
	}
	// Output:
	// rescue 0
	// expire 0
	// operations 0
	// purge 0
}
