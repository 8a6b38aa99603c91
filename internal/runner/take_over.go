package runner

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// takeOver takes over the jobs of a claim. The caller holds mu.
func (r *Runner) takeOver(claim *store.Claim, answer store.ClaimReply, now time.Time) {
	r.offset = answer.Now.Sub(now)
	if len(claim.Begun) > 0 {
		r.marked(claim.Begun)
	}
	r.stats.Claimed += uint64(len(answer.Jobs))
	got := make(map[string]int, len(claim.Queues))
	var suspects, ahead []*Task
	for i := range answer.Jobs {
		t := r.newTask(&answer.Jobs[i], claim.Worker, now)
		if t == nil {
			continue
		}
		got[t.Job.Queue]++
		switch {
		case claim.Worker != r.lease.Worker || r.stopping() || t.queue.removed || t.queue.cools(now) || !r.offered(t.Job.Kind):
			r.giveBack(t, 0)
		case t.Job.Suspect():
			suspects = append(suspects, t)
		case t.Job.Rescues > 0:
			r.tasks.move(t, placeFirst)
		case answer.Jobs[i].Ahead:
			ahead = append(ahead, t)
		default:
			r.tasks.move(t, placeReady)
		}
	}
	if len(ahead) > 0 {
		r.goAhead(ahead)
	}
	for _, asked := range claim.Queues {
		q := r.named[asked.Queue]
		n := got[asked.Queue]
		q.unseen.answered(n < asked.Start && !answer.More)
		switch {
		case n >= asked.Limit || answer.More:
			q.lookBy(now)
		case n >= asked.Start && asked.Limit > asked.Start:
			q.lookBy(now) // what was left behind may be a rescued job, which only starts first
		case answer.Next > 0:
			q.lookBy(now.Add(max(answer.Next, soonest)))
		}
	}
	for _, c := range answer.Cooling {
		q, until := r.named[c.Queue], now.Add(max(c.Left, soonest))
		q.unseen.hint(until) // nothing was looked at
		r.cool(q, until)
	}
	r.startReady()
	if len(suspects) > 0 {
		r.suspects(suspects)
	}
}

// offered reports whether a kind has not been paused since the claim was sent. The
// caller holds mu.
func (r *Runner) offered(kind string) bool {
	_, ok := r.offer.Kinds[kind]
	return ok
}

// newTask makes a task of a leased job. The caller holds mu.
func (r *Runner) newTask(l *store.LeasedJob, w job.WorkerID, now time.Time) *Task {
	q, kind := r.named[l.Queue], r.kinds[l.Kind]
	if q == nil || kind == nil {
		// Never asked for. What is not held is given back by the next report.
		r.log.Error("the store leased a job that was not asked for", "job", l.ID, "queue", l.Queue, "kind", l.Kind)
		r.claims.unclear = true
		return nil
	}
	t := &Task{Job: l.Job, kind: kind, queue: q, worker: w, offset: r.offset, claimed: now, marked: l.Begun}
	t.ctx, t.cancel = context.WithCancelCause(r.base)
	q.bytes = towards(q.bytes, float64(len(l.Args)+len(l.HeaderBytes)))
	return t
}

// begunSince lists the running tasks that began by then and that the store
// does not know to have begun. The caller holds mu.
func (r *Runner) begunSince(by time.Time) []store.RunRef {
	var refs []store.RunRef
	for t := range r.tasks.in(placeRunning) {
		if !t.marked && t.ownership != orphaned && !t.began.After(by) {
			refs = append(refs, t.Ref())
		}
	}
	return refs
}

// marked notes that the store knows these runs to have begun. The caller holds mu.
func (r *Runner) marked(refs []store.RunRef) {
	if len(refs) == 0 {
		return
	}
	for t := range r.tasks.in(placeRunning) {
		for _, ref := range refs {
			if t.Job.ID == ref.ID && t.Job.Run == ref.Run {
				t.marked = true
			}
		}
	}
}
