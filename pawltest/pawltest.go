// Package pawltest runs a user's handlers in a test: a real engine on SQLite in
// memory, in virtual time. An hour's wait costs nothing, and nothing is faked.
//
//	pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
//		e.Enqueue(Welcome{42})
//		e.RunUntilIdle()
//		e.RequireEnqueued(Ship{Order: 7})
//	})
//
// Handlers must not wait for anything outside the test (a network, another
// process): virtual time stands still meanwhile; see testing/synctest.
package pawltest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Engine is an engine under test. Its methods fail the test instead of
// returning errors; the embedded engine's methods are there too.
type Engine struct {
	*pawl.Engine
	t   *testing.T
	ctx context.Context
}

// Option changes how Run sets the engine up.
type Option func(*pawl.Config)

// Config changes the engine's configuration. The default serves queue "default"
// with 10 workers and logs to the test.
func Config(change func(*pawl.Config)) Option { return change }

// Run makes an engine, registers handlers and runs the test in virtual time. At
// the end the store must be consistent: its Check is part of every test.
func Run(t *testing.T, register func(to pawl.Registrar), test func(t *testing.T, e *Engine), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg := pawl.Config{
			Queues: pawl.Queues{job.DefaultQueue: {Workers: 10}},
			Logger: slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
		}
		for _, o := range opts {
			o(&cfg)
		}
		inner, err := pawl.New(sqlite.Memory(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		e := &Engine{Engine: inner, t: t, ctx: t.Context()}
		if register != nil {
			register(inner)
		}
		defer func() {
			if err := inner.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		test(t, e)
		e.requireConsistent()
	})
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// Enqueue hands in a job.
func (e *Engine) Enqueue(args pawl.Args, opts ...pawl.EnqueueOption) pawl.Receipt {
	e.t.Helper()
	r, err := e.Engine.Enqueue(e.ctx, args, opts...)
	if err != nil {
		e.t.Fatalf("enqueue %T: %v", args, err)
	}
	return r
}

// RunUntilIdle works until nothing is running and nothing that is ready gets
// claimed: what is left is due later, paused, or of a kind nobody handles.
func (e *Engine) RunUntilIdle() {
	e.t.Helper()
	e.upkeep()
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.ctx))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- e.Engine.Run(ctx) }()
	e.settle()
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, pawl.ErrNoHandlers) { // a test may only enqueue
		e.t.Fatalf("run: %v", err)
	}
}

// Advance works while virtual time passes: what falls due meanwhile runs at its
// time.
func (e *Engine) Advance(d time.Duration) {
	e.t.Helper()
	end := time.Now().Add(d)
	for {
		e.RunUntilIdle()
		next := e.nextDue()
		if next.IsZero() || next.After(end) {
			break
		}
		time.Sleep(time.Until(next)) // virtual
	}
	if left := time.Until(end); left > 0 {
		time.Sleep(left) // virtual
		e.RunUntilIdle()
	}
}

// Bounds of settle, in virtual time.
const (
	unclaimed = 30 * time.Second // ready for so long while nothing runs: nobody takes it
	forever   = 365 * 24 * time.Hour
)

func (e *Engine) settle() {
	e.t.Helper()
	step, quiet, claimed := time.Millisecond, time.Duration(0), uint64(0)
	for waited := time.Duration(0); waited < forever; waited += step {
		synctest.Wait()
		running, ready := e.busy()
		if running+ready == 0 {
			return
		}
		if now := e.Stats().Claimed; running > 0 || now != claimed {
			claimed, quiet = now, 0
		} else if quiet += step; quiet > unclaimed {
			return
		}
		time.Sleep(step) // virtual: a handler is sleeping, or nobody takes the job
		step = min(2*step, time.Minute)
	}
	e.t.Fatalf("still busy after a year: %s", e.describe(pawl.Filter{}))
}

// upkeep does at once what the engine's loops do every few seconds, so that a
// deadline or a retention that has passed is over when the test looks.
func (e *Engine) upkeep() {
	e.t.Helper()
	for _, round := range []func(context.Context, int) (int, error){e.Store().Expire, e.Store().Purge} {
		if _, err := round(e.ctx, 100_000); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *Engine) busy() (running, ready int) {
	e.t.Helper()
	running = e.count(pawl.Filter{States: []job.State{job.Running}})
	ready = e.count(pawl.Filter{States: []job.State{job.Waiting}, DueBefore: e.now().Add(time.Microsecond)})
	return running, ready
}

// nextDue is when the next job falls due or meets its deadline; zero for never.
func (e *Engine) nextDue() (next time.Time) {
	e.t.Helper()
	now := e.now()
	for j := range e.all(pawl.Filter{States: []job.State{job.Waiting, job.Suspended}}) {
		for _, at := range []time.Time{j.Due, j.Deadline} {
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}

func (e *Engine) now() time.Time {
	e.t.Helper()
	now, err := e.Store().Now(e.ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	return now
}

func (e *Engine) count(f pawl.Filter) int {
	e.t.Helper()
	n, err := e.Count(e.ctx, f, 0)
	if err != nil {
		e.t.Fatal(err)
	}
	return n
}

// RequireEnqueued fails the test unless a job with these arguments was handed
// in, whatever became of it. It returns that job, the newest of several.
func (e *Engine) RequireEnqueued(args pawl.Args) job.Job {
	e.t.Helper()
	want, err := pawl.JSON.Marshal(args)
	if err != nil {
		e.t.Fatal(err)
	}
	f := pawl.Filter{Kind: args.Kind()}
	for j := range e.all(f) {
		if string(j.Args) == string(want) {
			return j
		}
	}
	e.t.Fatalf("no job %s %s among %s", args.Kind(), want, e.describe(f))
	return job.Job{}
}

// RequireState fails the test unless the job is in the state.
func (e *Engine) RequireState(id job.ID, want job.State) job.Job {
	e.t.Helper()
	j, err := e.Get(e.ctx, id)
	if err != nil {
		e.t.Fatal(err)
	}
	if j.State != want {
		why, _ := e.Why(e.ctx, id)
		e.t.Fatalf("job %s is %s (%s), want %s", id, j.State, why, want)
	}
	return j
}

func (e *Engine) all(f pawl.Filter) func(func(job.Job) bool) {
	e.t.Helper()
	return func(yield func(job.Job) bool) {
		for page := (pawl.Page{Limit: 1000}); ; {
			list, err := e.List(e.ctx, f, page)
			if err != nil {
				e.t.Fatal(err)
			}
			for _, j := range list.Jobs {
				if !yield(j) {
					return
				}
			}
			if !list.More {
				return
			}
			page.After = list.Jobs[len(list.Jobs)-1].ID
		}
	}
}

func (e *Engine) describe(f pawl.Filter) string {
	e.t.Helper()
	var lines []string
	for j := range e.all(f) {
		lines = append(lines, fmt.Sprintf("%s %s %s", j.Kind, j.Args, j.State))
		if len(lines) == 20 {
			lines = append(lines, "…")
			break
		}
	}
	if len(lines) == 0 {
		return "no jobs"
	}
	slices.Reverse(lines)
	return strings.Join(lines, "; ")
}

func (e *Engine) requireConsistent() {
	e.t.Helper()
	report, err := e.Check(e.ctx)
	if err != nil {
		e.t.Errorf("check: %v", err)
	}
	for _, f := range report.Faults {
		e.t.Errorf("check: %s: %s %s", f.Rule, f.ID, f.Detail)
	}
}
