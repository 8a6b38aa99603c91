package runner

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// coolDown has the queue of a throttled run cool down, or the limit that it names, and
// says how the run ends.
//
// It comes before the end of the run, in a transaction of its own: a process that dies
// between the two leaves a queue that cools down, which it should, and a run that is
// rescued. The other way round its job could be claimed again before the queue cools
// down. A queue that cools down keeps the job by itself, so the job is due at once: it
// is there when an operator resets the cool-down.
func (r *Runner) coolDown(t *Task, o job.Outcome) job.Outcome {
	throttle := job.Throttle{Hint: o.Delay, Backoff: t.queue.policy.Load().coolDown}
	o.Delay = throttle.Alone()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.base), r.config.callLimit())
	defer cancel()
	if o.Scope != nil {
		if r.config.Drain == nil {
			return o
		}
		if err := r.config.Drain(ctx, t, *o.Scope, o.Delay); err != nil {
			r.log.Warn("a limit could not be drained, only the throttled job waits", "limit", *o.Scope, "job", t.Job.ID, "error", err)
		}
		return o
	}
	kept, ok := r.store.(store.CoolDowns)
	if !ok {
		return o
	}
	reply, err := kept.CoolDown(ctx, t.Job.Queue, throttle)
	if err != nil {
		r.log.Warn("a queue could not be made to cool down, only the throttled job waits", "queue", t.Job.Queue, "job", t.Job.ID, "error", err)
		return o
	}
	if reply.Began {
		r.log.Info("a queue was throttled and cools down", "queue", t.Job.Queue, "for", reply.Left, "throttled", reply.Throttles)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cool(t.queue, time.Now().Add(max(reply.Left, soonest)))
	r.signal(r.claimWanted) // it may sleep longer than the queue
	o.Delay = 0
	return o
}

// cool makes a queue sleep until then: it is not looked at, whatever hints say, and what
// was claimed of it and has not started goes back. The caller holds mu.
func (r *Runner) cool(q *queue, until time.Time) {
	q.coolUntil = until
	q.lookBy(until)
	for _, t := range r.takeUnstarted(func(t *Task) bool { return t.queue == q }) {
		r.giveBack(t, 0)
	}
}

// cools reports whether a queue sleeps its cool-down out.
func (q *queue) cools(now time.Time) bool { return now.Before(q.coolUntil) }
