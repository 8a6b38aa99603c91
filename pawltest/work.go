package pawltest

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Work calls one handler once, in real time, with everything around it that is
// there in production: the arguments go through the codec and a store, and
// middleware, timeout and the handling of panics are the engine's. It returns the
// job as the store has it after this run, and what the handler returned; a panic
// is an error whose text begins with "panic: ".
//
//	j, err := pawltest.Work(t, sendWelcome, Welcome{42}, pawltest.Handling(pawl.Timeout(time.Second)))
//
// The store is SQLite in memory. For another, or a handler of another shape
// (HandleResult, HandleBatch, HandleRaw), see [Engine.Work].
func Work[A pawl.Args](t *testing.T, work func(ctx context.Context, j *pawl.Job[A]) error, args A, opts ...Option) (j job.Job, err error) {
	t.Helper()
	s := settingsOf(opts, realStandstill)
	register := func(e *pawl.Engine) { pawl.Handle(e, work, s.handling...) }
	Real(t, sqlite.Memory(), register, func(t *testing.T, e *Engine) {
		t.Helper()
		j, err = e.Work(args, s.enqueuing...)
	}, append([]Option{servingQueueOf(t, args, s)}, opts...)...)
	return j, err
}

// servingQueueOf adds the queue that the job will go to, which its type may say.
func servingQueueOf(t *testing.T, args pawl.Args, s *settings) Option {
	t.Helper()
	var d job.Draft
	Real(t, sqlite.Memory(), nil, func(t *testing.T, e *Engine) { d = e.draft(args, s.enqueuing...) }, Config(func(c *pawl.Config) {
		for _, change := range s.changes {
			change(c)
		}
	}))
	return Config(func(c *pawl.Config) { c.Queues = pawl.Queues{d.Queue: {Workers: 1}} })
}

// Work hands in a job, works until its next run has ended, and returns the job as
// the store has it then, and what its handler returned. Other jobs that are
// ready may run as well. A job that does not run fails the test.
func (e *Engine) Work(args pawl.Args, opts ...pawl.EnqueueOption) (job.Job, error) {
	e.t.Helper()
	r := e.Enqueue(args, opts...)
	if r.Duplicate {
		e.t.Fatalf("work on %T: it is a duplicate of job %s", args, r.ID)
	}
	before, err := e.Get(e.ctx, r.ID)
	if err != nil {
		e.t.Fatal(err)
	}
	var why pawl.Why
	e.work(func() bool {
		e.t.Helper()
		now := e.after(before)
		return now.Run > before.Run && now.State != job.Running
	}, func() { why, _ = e.Why(e.ctx, r.ID) })
	after := e.after(before)
	if after.Run == before.Run && after.State == before.State {
		e.t.Fatalf("work on %T: job %s did not run: %s", args, r.ID, why)
	}
	if err, ran := e.watch.outcome(r.ID); ran {
		return after, err
	}
	if after.State != job.Done { // it ended before its handler was called, as by a deadline that has passed
		return after, errors.New(after.Reason)
	}
	return after, nil
}

// after is the job as it is now. One that is gone is done: its queue keeps
// nothing of it.
func (e *Engine) after(before job.Job) job.Job {
	e.t.Helper()
	now, err := e.Get(e.ctx, before.ID)
	if errors.Is(err, pawl.ErrNotFound) {
		before.State, before.Run = job.Done, before.Run+1
		return before
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return now
}
