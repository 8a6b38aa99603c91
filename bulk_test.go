package pawl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

// cancelled makes jobs that were cancelled, in a queue that nobody serves.
func cancelled(t *testing.T, e *pawltest.Engine, jobs int) pawl.Filter {
	t.Helper()
	for range jobs {
		e.Enqueue(Welcome{1}, pawl.Queue("elsewhere"))
	}
	f := pawl.Filter{Queue: "elsewhere"}
	if n, err := e.CancelAll(t.Context(), f); err != nil || n != jobs {
		t.Fatalf("cancelled %d: %v", n, err)
	}
	return f
}

func TestJ25_BulkIsDoneByWhoWaitsForIt(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		f := cancelled(t, e, 1201)
		ctx := pawl.As(t.Context(), "ann", "a bad deploy")
		begin := time.Now()
		op, err := e.Bulk(ctx, pawl.BulkRetry(f))
		if err != nil || op.State != pawl.OperationOpen || op.By != "ann" || op.Note != "a bad deploy" || op.Pace != 1000 {
			t.Fatalf("%+v, %v", op, err)
		}
		if again, err := e.Bulk(ctx, pawl.BulkRetry(f), pawl.OperationID(op.ID)); err != nil || again.ID != op.ID { // a repetition
			t.Errorf("%+v, %v", again, err)
		}
		op, err = e.WaitOperation(ctx, op.ID)
		if want := (pawl.OperationCounts{Looked: 1201, Changed: 1201}); err != nil || op.State != pawl.OperationDone || op.Counts != want {
			t.Fatalf("%s, %s, %v", op.State, op.Counts, err)
		}
		if took := time.Since(begin); took < 1200*time.Millisecond || took > 1500*time.Millisecond { // virtual
			t.Errorf("1,201 jobs at 1,000 a second took %v", took)
		}
		if n, err := e.Count(ctx, pawl.Filter{Queue: "elsewhere", States: []pawl.State{pawl.StateWaiting}}, 0); err != nil || n.Jobs != 1201 {
			t.Errorf("%d wait, %v", n.Jobs, err)
		}
		list, err := e.Operations(ctx)
		if err != nil || len(list) != 1 || list[0].ID != op.ID {
			t.Errorf("%v, %v", list, err)
		}
		if got, err := e.Operation(ctx, op.ID); err != nil || got.Counts != op.Counts {
			t.Errorf("%v, %v", got, err)
		}
		if _, err := e.Operation(ctx, job.NewID()); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("of nobody: %v", err)
		}
		if _, err := e.Operation(ctx, pawl.ID{}); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("without an id: %v", err)
		}
	})
}

// running is a process in virtual time, with jobs in a queue that nobody serves.
func running(t *testing.T, jobs int, f func(ctx context.Context, e *pawl.Engine)) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		defer e.Close()
		ignore[Welcome](e)
		for i := range jobs {
			if _, err := e.Enqueue(t.Context(), Welcome{int64(i)}, pawl.Queue("elsewhere")); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		time.Sleep(time.Minute) // virtual: it looks from time to time
		f(ctx, e)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A process that runs goes on with what any began: its upkeep finds it.
func TestJ25_BulkIsDoneByWhoRuns(t *testing.T) {
	running(t, 300, func(ctx context.Context, e *pawl.Engine) {
		op, err := e.Bulk(ctx, pawl.BulkRequeue(pawl.Filter{Queue: "elsewhere"}, "other"), pawl.Pace(100))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // virtual: two seconds of its pace
		half, err := e.Operation(ctx, op.ID)
		if err != nil || half.State != pawl.OperationOpen || half.Counts.Changed < 180 || half.Counts.Changed > 210 {
			t.Errorf("after two seconds: %s, %s, %v", half.State, half.Counts, err)
		}
		time.Sleep(2 * time.Second) // virtual: the rest of it
		op, err = e.Operation(ctx, op.ID)
		if err != nil || op.State != pawl.OperationDone || op.Counts.Changed != 300 {
			t.Errorf("%s, %s, %v", op.State, op.Counts, err)
		}
		n, err := e.Count(ctx, pawl.Filter{Queue: "other", States: []pawl.State{pawl.StateWaiting}}, 0)
		if err != nil || n.Jobs != 300 {
			t.Errorf("%d were moved, %v", n.Jobs, err)
		}
	})
}

func TestJ25_ACancelledOperationStops(t *testing.T) {
	running(t, 300, func(ctx context.Context, e *pawl.Engine) {
		op, err := e.Bulk(ctx, pawl.BulkCancel(pawl.Filter{Queue: "elsewhere"}), pawl.Pace(100))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // virtual: a second of its pace
		op, err = e.CancelOperation(pawl.As(ctx, "bob", "enough"), op.ID)
		if err != nil || op.State != pawl.OperationCancelled || op.Counts.Changed == 0 || op.Counts.Changed == 300 {
			t.Fatalf("%s, %s, %v", op.State, op.Counts, err)
		}
		time.Sleep(time.Minute) // virtual: time in which it would have gone on
		if later, err := e.WaitOperation(ctx, op.ID); err != nil || later.Counts != op.Counts || later.Reason != "cancelled by bob" {
			t.Errorf("%s, %s, %v", later.State, later.Counts, err)
		}
	})
}

// Running jobs of the process hear of a bulk cancel.
func TestJ25_BulkCancelStopsRunningJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		defer e.Close()
		began := make(chan struct{})
		pawl.Handle(e, func(ctx context.Context, _ *pawl.Job[Welcome]) error {
			close(began)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		r, err := e.Enqueue(t.Context(), Welcome{1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		<-began
		if _, err := e.Bulk(ctx, pawl.BulkCancel(pawl.Filter{})); err != nil {
			t.Fatal(err)
		}
		if j, err := e.Wait(ctx, r.ID); err != nil || j.State != pawl.StateCancelled {
			t.Errorf("%s, %v", j.State, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A dry run says what would change: not what matches.
func TestJ25_ADryRunForesees(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		ctx := t.Context()
		unique := func(key string) pawl.EnqueueOption { return pawl.Unique(pawl.ByKey(key)) }
		for range 2 { // two of one key, of which one can come back
			r := e.Enqueue(Welcome{1}, unique("twice"))
			if _, err := e.Cancel(ctx, r.ID); err != nil {
				t.Fatal(err)
			}
		}
		r := e.Enqueue(Welcome{2}, unique("taken"))
		if _, err := e.Cancel(ctx, r.ID); err != nil {
			t.Fatal(err)
		}
		e.Enqueue(Welcome{2}, unique("taken")) // holds it
		e.Enqueue(Welcome{3}, pawl.In(time.Hour))
		all := pawl.Filter{States: []pawl.State{pawl.StateWaiting, pawl.StateCancelled}}
		for range 2 { // it changes nothing
			if n, err := e.RetryAll(ctx, all, pawl.DryRun()); err != nil || n != 2 {
				t.Errorf("a dry run of 5 jobs: %d, %v, want 2", n, err)
			}
		}
		foreseen, err := e.Bulk(ctx, pawl.BulkRetry(all), pawl.DryRun())
		want := pawl.OperationCounts{Looked: 5, Changed: 2, Duplicate: 2, Left: 1}
		if err != nil || foreseen.ID != (pawl.ID{}) || foreseen.Counts != want {
			t.Errorf("foreseen: %s, %v, want %s", foreseen.Counts, err, want)
		}
		if list, err := e.Operations(ctx); err != nil || len(list) != 0 {
			t.Errorf("a dry run is kept: %v, %v", list, err)
		}
		op, err := e.Bulk(ctx, pawl.BulkRetry(all))
		if err != nil {
			t.Fatal(err)
		}
		if op, err = e.WaitOperation(ctx, op.ID); err != nil || op.Counts != want {
			t.Errorf("came true: %s, %v, want %s", op.Counts, err, want)
		}
	})
}

func TestJ25_OperatorsMoveJobs(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) { ignore[Welcome](to) }, func(t *testing.T, e *pawltest.Engine) {
		ctx := t.Context()
		r := e.Enqueue(Welcome{1}, pawl.Queue("mial"))
		want := func(what string, want pawl.Change) func(pawl.Change, error) {
			return func(got pawl.Change, err error) {
				t.Helper()
				if err != nil || got != want {
					t.Errorf("%s: %v, %v, want %v", what, got, err, want)
				}
			}
		}
		want("requeue", pawl.Changed)(e.Requeue(ctx, r.ID, "default"))
		want("again", pawl.Same)(e.Requeue(ctx, r.ID, "default"))
		want("priority", pawl.Changed)(e.SetPriority(ctx, r.ID, 1))
		want("of nobody", pawl.NotFound)(e.SetPriority(ctx, job.NewID(), 1))
		if _, err := e.SetPriority(ctx, r.ID, 10); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "1..9") {
			t.Errorf("priority 10: %v", err)
		}
		if _, err := e.Requeue(ctx, r.ID, "a b"); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("queue %q: %v", "a b", err)
		}
		e.RunUntilIdle()
		if j := e.RequireState(r.ID, job.Done); j.Priority != 1 {
			t.Errorf("priority %d", j.Priority)
		}
		want("when it is done", pawl.Ended)(e.Requeue(ctx, r.ID, "other"))

		lots := pawl.Filter{Queue: "mial"}
		for range 3 {
			r = e.Enqueue(Welcome{1}, pawl.Queue("mial"))
		}
		if n, err := e.SetPriorityAll(ctx, lots, 2); err != nil || n != 3 {
			t.Errorf("%d got another priority, %v", n, err)
		}
		if n, err := e.RequeueAll(ctx, lots, "default", pawl.DryRun()); err != nil || n != 3 {
			t.Errorf("%d would be moved, %v", n, err)
		}
		if n, err := e.RequeueAll(ctx, lots, "default"); err != nil || n != 3 {
			t.Errorf("%d were moved, %v", n, err)
		}
		e.RunUntilIdle()
		e.RequireState(r.ID, job.Done)
		err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			r, err := tx.Enqueue(ctx, Welcome{1}, pawl.Queue("mial"), pawl.In(time.Hour))
			if err != nil {
				return err
			}
			want("requeue in a transaction", pawl.Changed)(tx.Requeue(ctx, r.ID, "default"))
			want("priority in a transaction", pawl.Changed)(tx.SetPriority(ctx, r.ID, 3))
			want("run now in a transaction", pawl.Changed)(tx.RunNow(ctx, r.ID))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		e.RunUntilIdle()
		if n, err := e.Count(ctx, pawl.Filter{States: []pawl.State{pawl.StateDone}}, 0); err != nil || n.Jobs != 5 {
			t.Errorf("%d are done, %v, want 5", n.Jobs, err)
		}
	})
}

func TestJ30_RunNowIsTheNext(t *testing.T) {
	var order []int64
	register := func(e *pawl.Engine) {
		pawl.Handle(e, func(_ context.Context, j *pawl.Job[Welcome]) error {
			order = append(order, j.Args.UserID)
			return nil
		})
	}
	one := pawltest.Config(func(c *pawl.Config) { c.Queues = pawl.Queues{"default": {Workers: 1}} })
	pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
		ctx := t.Context()
		if err := e.Queue("default").Pause(ctx); err != nil {
			t.Fatal(err)
		}
		e.Enqueue(Welcome{1})
		e.Enqueue(Welcome{2}, pawl.Priority(1))
		last := e.Enqueue(Welcome{3}, pawl.In(time.Hour))
		if c, err := e.RunNow(ctx, last.ID); err != nil || c != pawl.Changed {
			t.Fatalf("%v, %v", c, err)
		}
		// What holds the queue holds it, and Why says so.
		e.Advance(time.Minute)
		if why, err := e.Why(ctx, last.ID); err != nil || why.Code != pawl.WhyPaused {
			t.Errorf("%v, %v", why, err)
		}
		if err := e.Queue("default").Resume(ctx); err != nil {
			t.Fatal(err)
		}
		e.RunUntilIdle()
		if want := []int64{2, 3, 1}; !slices.Equal(order, want) { // a higher priority, then itself, then the others
			t.Errorf("they ran in the order %v, want %v", order, want)
		}
		if c, err := e.RunNow(ctx, last.ID); err != nil || c != pawl.Ended {
			t.Errorf("when it has ended: %v, %v", c, err)
		}
	}, one)
}

func TestJ25_WhatIsAskedOfBulkIsChecked(t *testing.T) {
	e := newEngine()
	defer e.Close()
	ctx := t.Context()
	for what, err := range map[string]error{
		"Filter.States": errOf(e.Bulk(ctx, pawl.BulkDelete(pawl.Filter{Queue: "mail"}))),
		"Pace":          errOf(e.Bulk(ctx, pawl.BulkRetry(pawl.Filter{}), pawl.Pace(0))),
		"Most":          errOf(e.Bulk(ctx, pawl.BulkRetry(pawl.Filter{}), pawl.Most(0))),
		"priority":      errOf(e.Bulk(ctx, pawl.BulkPriority(pawl.Filter{}, 0))),
		"queue":         errOf(e.Bulk(ctx, pawl.BulkRequeue(pawl.Filter{}, ""))),
		"Filter.Queue":  errOf(e.Bulk(ctx, pawl.BulkCancel(pawl.Filter{Queue: "a b"}))),
	} {
		if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }

// Many who advance an operation keep its pace: they share its pages.
func TestJ25_ManyKeepThePace(t *testing.T) {
	running(t, 400, func(ctx context.Context, e *pawl.Engine) {
		op, err := e.Bulk(ctx, pawl.BulkCancel(pawl.Filter{Queue: "elsewhere"}), pawl.Pace(100))
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan pawl.Operation, 3)
		begin := time.Now()
		for range 3 {
			go func() {
				op, err := e.WaitOperation(ctx, op.ID)
				if err != nil {
					t.Error(err)
				}
				waited <- op
			}()
		}
		for range 3 {
			if op := <-waited; op.Counts.Changed != 400 {
				t.Errorf("%s", op.Counts)
			}
		}
		if took := time.Since(begin); took < 3800*time.Millisecond || took > 5*time.Second { // virtual
			t.Errorf("400 jobs at 100 a second took %v", took)
		}
	})
}

// An operation that could change nothing is a mistake, and is refused.
func TestJ25_StatesThatAVerbLeavesAloneAreRefused(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		in := func(s ...pawl.State) pawl.Filter { return pawl.Filter{States: s} }
		for text, b := range map[string]pawl.Bulk{
			"Filter.States [done dead]: must have one of [blocked waiting running suspended]: cancel does nothing to others": pawl.BulkCancel(in(pawl.StateDone, pawl.StateDead)),
			"must have one of [waiting suspended dead cancelled]: retry":                                                     pawl.BulkRetry(in(pawl.StateDone, pawl.StateRunning)),
			"must have one of [blocked waiting suspended dead cancelled]: requeue":                                           pawl.BulkRequeue(in(pawl.StateRunning), "slow"),
			"must have one of [blocked waiting suspended dead cancelled]: set priority":                                      pawl.BulkPriority(in(pawl.StateDone), 1),
		} {
			if _, err := e.Bulk(t.Context(), b); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), text) {
				t.Errorf("%v does not say %s", err, text)
			}
		}
		if _, err := e.CancelAll(t.Context(), in(pawl.StateDone)); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("CancelAll: %v", err)
		}
		for _, b := range []pawl.Bulk{
			pawl.BulkCancel(in(pawl.StateDone, pawl.StateWaiting)), pawl.BulkDelete(in(pawl.StateDone)), pawl.BulkRequeue(in(pawl.StateDead), "slow"),
			pawl.BulkRetry(in(pawl.StateWaiting)), pawl.BulkPriority(in(pawl.StateWaiting), job.MaxPriority),
		} {
			if _, err := e.Bulk(t.Context(), b, pawl.DryRun()); err != nil {
				t.Error(err)
			}
		}
	})
}
