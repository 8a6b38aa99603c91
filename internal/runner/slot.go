package runner

import (
	"bytes"
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/pawlwork/pawl/internal/member"
	"github.com/pawlwork/pawl/job"
)

// slot is one goroutine that runs handlers, one after the other. It is parked
// in Runner.parked while there is nothing to run, so that a busy runner starts
// no goroutine per job.
type slot struct {
	runner    *Runner
	next      chan *Task // holds one; closed to end a parked slot
	goroutine uint64     // its number in a dump; guarded by Runner.mu
	current   *Task      // its handler is being called; only of this goroutine
}

// loop runs tasks until its channel is closed.
func (s *slot) loop() {
	defer s.exited()
	number := goroutineNumber()
	s.runner.mu.Lock()
	s.goroutine = number
	s.runner.mu.Unlock()
	for t := range s.next {
		for t != nil {
			s.current = t
			o, crashed := s.runner.call(t)
			s.current = nil
			t = s.runner.ended(s, t, o, crashed)
		}
	}
}

// exited carries the slot over to a new goroutine when a handler has ended this
// one (runtime.Goexit), so that neither the run nor the slot is lost.
func (s *slot) exited() {
	t := s.current
	if t == nil {
		return
	}
	s.current = nil
	next := s.runner.ended(s, t, exited, true)
	go s.loop()
	if next != nil {
		s.next <- next
	}
}

// call runs one handler and always has an outcome, unless the handler ends the
// goroutine. Crashed says that it panicked.
func (r *Runner) call(t *Task) (o job.Outcome, crashed bool) {
	if !t.Job.Deadline.IsZero() && !t.Now().Before(t.Job.Deadline) {
		t.cancel(job.ErrDeadline)
		return job.Outcome{Kind: job.OutOfTime, Message: job.ErrDeadline.Error() + " before it started"}, false
	}
	ctx := t.ctx
	if timeout := t.timeout(r.config.Timeout); timeout > 0 {
		limited, stop := context.WithDeadlineCause(ctx, t.began.Add(timeout), job.ErrTimeout)
		defer stop()
		ctx = limited
	}
	if !t.Job.Deadline.IsZero() {
		limited, stop := context.WithDeadlineCause(ctx, t.Job.Deadline.Add(-t.offset), job.ErrDeadline)
		defer stop()
		ctx = limited
	}
	defer func() {
		if value := recover(); value != nil {
			o, crashed = panicked(value, debug.Stack()), true
		}
		if ctx != t.ctx && ctx.Err() != nil {
			t.cancel(context.Cause(ctx))
		}
	}()
	o = t.kind.Handler.Work(ctx, t)
	return o, o.Panicked
}

// start gives a task to a slot goroutine. The caller holds mu.
func (r *Runner) start(t *Task) {
	r.begin(t)
	var s *slot
	if n := len(r.parked); n > 0 {
		s, r.parked = r.parked[n-1], r.parked[:n-1]
	} else {
		s = &slot{runner: r, next: make(chan *Task, 1)}
		go s.loop()
	}
	t.slot = s
	s.next <- t
}

// begin moves a task to those that run. The caller holds mu.
func (r *Runner) begin(t *Task) {
	t.began = time.Now()
	r.tasks.move(t, placeRunning)
	r.countBegan(t)
}

// ended hands over what a run came to and returns the slot's next task, nil
// when it was parked.
func (r *Runner) ended(s *slot, t *Task, o job.Outcome, crashed bool) *Task {
	took := time.Since(t.began)
	cause := t.cause()
	if o.Kind == job.Throttled {
		o = r.coolDown(t, o)
	}
	t.cancel(context.Canceled) // releases what the handler derived from it
	if cause != nil && !crashed {
		o = judge(o, cause, t.timeout(r.config.Timeout))
	}
	inTx := t.tx()
	if o.Kind == job.Succeeded && inTx != txNone && inTx != txDone {
		o = inVain
	}
	end := r.decide(t, o)
	t.mu.Lock()
	t.journal.close(&end)
	t.mu.Unlock()

	r.mu.Lock()
	defer r.mu.Unlock()
	if crashed {
		r.stats.Panics++
	}
	t.slot = nil
	t.queue.mean = max(towards(t.queue.mean, float64(took)), 1)
	if t.ownership != abandoned { // else its end is on its way already
		t.outcome, t.end, t.took, t.doubt = o, end, took, inTx.doubt()
	}
	switch {
	case t.ownership == abandoned:
		r.abandoned = slices.DeleteFunc(r.abandoned, func(other *Task) bool { return other == t })
	case inTx == txDone:
		r.stats.InTx++
		r.tasks.move(t, placeOver)
		r.signal(r.finishWanted)
	case t.ownership == orphaned && o.Kind != job.Succeeded:
		// Its job belongs to the rescue: whatever else it says would be refused.
		r.stats.Refused++
		r.tasks.move(t, placeNone)
	default:
		r.hand(t)
	}
	if r.tasks.counts[placeRunning] == 0 {
		r.emptying.neverEmpty = false
	}
	if t == r.suspect.task {
		r.suspectEnded()
	}
	if next := r.nextFor(t.queue); next != nil {
		r.begin(next)
		next.slot = s
		r.wantClaim(t.queue, t.began.Add(took))
		return next
	}
	if r.phase == phaseStopped {
		close(s.next) // Run has ended without this handler
		return nil
	}
	r.parked = append(r.parked, s)
	if r.stopping() {
		r.signal(r.calm)
	}
	r.wantClaim(t.queue, t.began.Add(took))
	return nil
}

// nextFor is the next task to begin, of the queue that has just freed a slot if
// it has one. The caller holds mu.
func (r *Runner) nextFor(q *queue) *Task {
	if !r.mayStart() {
		return nil
	}
	r.markFirst(q)
	if q.running < q.slots && q.ready.len() > 0 {
		return q.ready.head
	}
	return nil
}

// markFirst keeps free slots for the jobs that go first. The caller holds mu.
func (r *Runner) markFirst(q *queue) {
	for q.running < q.slots && q.first.len() > 0 {
		r.mark(q.first.head)
	}
}

// startReady starts what fits. The caller holds mu.
func (r *Runner) startReady() {
	if !r.mayStart() {
		return
	}
	for _, q := range r.queues {
		r.markFirst(q)
		for q.running < q.slots && q.ready.len() > 0 {
			r.start(q.ready.head)
		}
	}
}

// mayStart reports whether handlers may begin: not while a suspect runs alone
// or waits to, nor without a fresh lease. The caller holds mu.
func (r *Runner) mayStart() bool {
	return r.lease.Healthy && !r.stopping() && !r.suspect.holdsUp() && time.Since(r.lease.Beaten) < member.Lasts(r.config.LostAfter)
}

// decide is the pure rule with a net under the user's backoff function.
func (r *Runner) decide(t *Task, o job.Outcome) (end job.End) {
	defer func() {
		if value := recover(); value != nil {
			r.log.Error("backoff function panicked, the default is used", "kind", t.Job.Kind, "panic", value)
			end = job.Decide(t.run(o), o, job.Policy{Backoff: defaultBackoff, Keep: t.queue.policy.Load().keep})
		}
	}()
	end = t.decide(o)
	end.Delay = max(end.Delay, 0)
	return end
}

// goroutineNumber reads this goroutine's number as dumps show it.
func goroutineNumber() uint64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(text, []byte(" "))
	n, _ := strconv.ParseUint(string(digits), 10, 64)
	return n
}
