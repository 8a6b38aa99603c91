package runner

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Task is one run in progress: a leased job and what its handler says about it.
// A handler may keep it after it returned; what it then says is dropped.
type Task struct {
	// Job is the job as it was claimed. The runner does not change it.
	Job job.Job

	kind    *Kind
	queue   *queue
	worker  job.WorkerID
	offset  time.Duration // the store's clock minus the process's, at the claim
	claimed time.Time
	began   time.Time

	ctx    context.Context
	cancel context.CancelCauseFunc

	// Guarded by Runner.mu.
	before, after *Task     // in its place
	slot          *slot     // its handler is called in
	cancelled     time.Time // when its context was found cancelled
	place         place
	ownership     ownership
	marked        bool // the store counts the run as begun
	stuck         bool

	// Of the end, once there is one.
	doubt    doubt
	stripped bool  // its end was replaced by a plain failure
	waited   bool  // an open transaction held its job
	refusals uint8 // times the store refused its end alone

	outcome job.Outcome
	end     job.End
	took    time.Duration
	weight  int     // of the end, in bytes
	applied uint32  // Runner.ends.applied at the first of them, the low bits
	inTx    txState // guarded by mu
	ahead   bool    // it waits before those whose keys missed no turns; here it takes no room (Runner.mu)

	mu      sync.Mutex // guards inTx, too
	txEnd   *job.End   // how the transaction ends the run
	journal journal
}

// ownership is whether the run still counts.
type ownership uint8

const (
	owned     ownership = iota
	orphaned            // its worker was declared lost: an end would be refused
	abandoned           // it was given back on its behalf: what its handler comes to is dropped
)

// doubt is who may have ended the run without a word. Then the store may answer
// its end Already or Stale although nobody else owns the job.
type doubt uint8

const (
	doubtTry doubt = 1 << iota // an earlier try of its end, whose answer was lost
	doubtTx                    // a transaction whose end nobody told of
)

// txState is how far a handler got with finishing its job in a transaction.
type txState uint8

const (
	txNone    txState = iota
	txOpen            // in a transaction that has not ended
	txDone            // committed: the run is over
	txUnclear         // the answer of the commit was lost
	txUndone          // rolled back
)

// ending reports whether the transaction may have ended the run, or may yet.
func (s txState) ending() bool { return s == txOpen || s == txDone || s == txUnclear }

// doubt is what it leaves when the handler has returned.
func (s txState) doubt() doubt {
	if s == txOpen || s == txUnclear {
		return doubtTx
	}
	return 0
}

// inVain is the outcome of a handler that returned nil although the transaction
// in which it had finished its job is not known to be committed. It does not count
// as done: its effects may be gone with the transaction (P3). If they are not, the
// run is over, and this end changes nothing.
var inVain = job.Outcome{Kind: job.Failed, Message: "the handler returned nil, but the transaction in which it finished the job was not committed"}

// Ref names the run.
func (t *Task) Ref() store.RunRef { return store.RunRef{ID: t.Job.ID, Run: t.Job.Run} }

// Worker is the owner of the lease.
func (t *Task) Worker() job.WorkerID { return t.worker }

// Began is when the handler started, by the process's clock.
func (t *Task) Began() time.Time { return t.began }

// Now is the time by the store's clock, as estimated at the claim.
func (t *Task) Now() time.Time { return time.Now().Add(t.offset) }

// Suspend cancels the handler's context: its job is given back, and what the handler
// comes to is decided.
func (t *Task) Suspend(cause error) { t.cancel(cause) }

// Lost reports whether the run no longer owns its job, as far as is known:
// whatever it writes changes nothing.
func (t *Task) Lost() bool { return t.cause() == job.ErrLeaseLost }

// End is how the run would end with this outcome, with the log lines and the
// progress that are not stored yet: for finishing in a transaction. It
// changes nothing, so that it can be asked for again after a rollback.
func (t *Task) End(o job.Outcome) job.End {
	end := t.decide(o)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.journal.peek(&end)
	return end
}

// Final reports whether the job is over when its handler, whose context this is,
// comes to this outcome now: for those who report errors.
func (t *Task) Final(ctx context.Context, o job.Outcome) bool {
	if !o.Panicked {
		o = judge(o, context.Cause(ctx), 0)
	}
	return job.Decide(t.run(o), o, job.Policy{Backoff: job.NoBackoff}).To.Final() // the user's function is called once, for the end
}

// FinishingInTx says that an end of the run is part of an open transaction.
func (t *Task) FinishingInTx(end job.End) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inTx != txDone {
		t.inTx, t.txEnd = txOpen, &end
	}
}

// FinishedInTx says that the transaction is committed. The run is over: what
// the handler returns changes nothing any more.
func (t *Task) FinishedInTx() { t.setTx(txDone) }

// NotFinishedInTx says that the transaction was rolled back.
func (t *Task) NotFinishedInTx() { t.setTx(txUndone) }

// UnclearInTx says that the answer of the commit was lost. The runner then ends
// the run once more, which changes nothing if the commit happened.
func (t *Task) UnclearInTx() { t.setTx(txUnclear) }

// Ends reports whether a transaction ends the run, has ended it, or may have.
func (t *Task) Ends() bool { return t.tx().ending() }

func (t *Task) setTx(s txState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inTx != txDone {
		t.inTx = s
	}
}

func (t *Task) tx() txState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inTx
}

// cause is why the context was cancelled; nil while it is not.
func (t *Task) cause() error { return context.Cause(t.ctx) }

// timeout is the time one attempt may take; 0 means any.
func (t *Task) timeout(fallback time.Duration) time.Duration {
	return cmp.Or(t.Job.Timeout, t.kind.Timeout, fallback)
}

// decide applies the pure rule with the policy of kind and queue.
func (t *Task) decide(o job.Outcome) job.End {
	p := t.queue.policy.Load()
	backoff := t.kind.Backoff
	if backoff == nil {
		backoff = p.backoff
	}
	return job.Decide(t.run(o), o, job.Policy{Backoff: backoff, Keep: p.keep})
}

// run is what the rule needs to know of a run with this outcome.
func (t *Task) run(o job.Outcome) job.Run {
	j := &t.Job
	r := job.Run{ID: j.ID, Run: j.Run, Used: j.Used, MaxAttempts: j.MaxAttempts, Worker: t.worker, By: t.queue.by, Started: j.Started, Ties: j.Ties, Job: j, Throttles: j.Throttles()}
	if o.Kind == job.StoreFailed {
		r.StoreFailures = j.StoreFailures()
	}
	return r
}
