package runner

import (
	"context"
	"slices"
	"time"

	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A job that this process accepts while it has a free slot for it starts in the commit
// that accepts it (J34). Its way:
//
//	HandOver      a slot is kept, the draft asks to begin; what is held includes it
//	store         the commit writes it as running, or as any other that waits
//	Settle        it starts here; or the slot is free again
//
// The order of starts differs from that of claims by at most what one claim takes: there
// is a free slot only beyond those of all jobs that wait as far as this process can
// know (unseen).

// reservation is a slot that is kept for a job on its way to the store.
type reservation struct {
	job.HandOver
	runner *Runner
	task   *Task
	begins bool // guarded by Runner.mu
}

// HandOver keeps free slots for those of the drafts that may begin in the commit that
// is to accept them, and has them ask for that.
func (r *Runner) HandOver(drafts []job.Draft) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handOver(drafts)
}

// handOver is HandOver. The caller holds mu.
func (r *Runner) handOver(drafts []job.Draft) {
	for i := range drafts {
		drafts[i].HandOver = nil // of an earlier try
	}
	if r.phase != phaseWorking || r.revision == 0 || r.claims.unclear || r.reporting || r.hints.Uncounted() ||
		r.pauses.All || r.tooManyEnds() || !r.mayStart() {
		return
	}
	// What has a unique key, or may be there, can have to wait for somebody's open
	// transaction, and the others of its call with it: no slot is kept for so long.
	if slices.ContainsFunc(drafts, func(d job.Draft) bool { return d.Resend || d.Unique.Hash != nil }) {
		return
	}
	now := time.Now()
	for i := range drafts {
		d := &drafts[i]
		q, kind := r.named[d.Queue], r.kinds[d.Kind]
		if q == nil || kind == nil || !q.hasRoom(now) || !r.mayBegin(d) {
			continue
		}
		t := &Task{Job: d.Begun(r.lease.Worker, time.Time{}), kind: kind, queue: q, worker: r.lease.Worker, offset: r.offset}
		r.tasks.move(t, placeReserved)
		v := &reservation{runner: r, task: t}
		v.HandOver = job.HandOver{Worker: t.worker, Revision: r.revision, Taker: v}
		d.HandOver = &v.HandOver
	}
}

// mayBegin reports whether a claim of this process would take the draft, if it was
// first. The caller holds mu.
func (r *Runner) mayBegin(d *job.Draft) bool {
	return d.CanBegin() && r.offer.Takes(d.Kind, d.Version, d.Capabilities) &&
		!slices.Contains(r.pauses.Queues, d.Queue) &&
		r.gates.rules.Gate(d.Queue, d.Kind, d.Key) == 0 // its sender may have gone by other limits
}

// hasRoom reports whether a slot is free that no waiting job is known to want. The
// caller holds mu.
func (q *queue) hasRoom(now time.Time) bool {
	return !q.removed && !q.cools(now) && !q.unseen.some(now) && q.slots > q.running+q.first.len()+q.ready.len()+q.unseen.own
}

// Settle takes note of what became of a job on its way to the store, and starts it if
// it began there. The first call counts; a later one that says otherwise is of an
// earlier try, whose row nobody works on: the next report gives it back.
func (v *reservation) Settle(h job.HandedOver) {
	r, t := v.runner, v.task
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.place != placeReserved {
		if !h.Started.IsZero() && !v.begins {
			r.lookForOwn()
		}
		return
	}
	r.tasks.move(t, placeNone)
	if r.stopping() {
		r.signal(r.calm) // which waits for reservations
	}
	if h.Started.IsZero() {
		if h.Unknown {
			r.lookForOwn()
		}
		r.freeSlot(t.queue)
		return
	}
	v.begins = true
	now := time.Now()
	t.Job.Created, t.Job.Due, t.Job.Started = h.Started, h.Started, h.Started
	t.claimed = now
	t.ctx, t.cancel = context.WithCancelCause(r.base)
	t.queue.bytes = towards(t.queue.bytes, float64(len(t.Job.Args)+len(t.Job.HeaderBytes)))
	r.stats.HandedOver++
	switch {
	case t.worker != r.lease.Worker || r.stopping() || t.queue.removed || t.queue.cools(now) || !r.offered(t.Job.Kind):
		r.giveBack(t, 0)
	case !r.mayStart() || t.queue.running >= t.queue.slots: // since the slot was kept
		r.tasks.moveFirst(t, placeReady)
	default:
		r.start(t)
	}
}

// lookForOwn asks for a report, which gives back what is leased to this worker and not
// held. The caller holds mu.
func (r *Runner) lookForOwn() {
	r.claims.unclear = true
	r.signal(r.claimWanted)
}

// freeSlot starts what waits for a slot that is not needed. The caller holds mu.
func (r *Runner) freeSlot(q *queue) {
	if next := r.nextFor(q); next != nil {
		r.start(next)
	}
	r.wantClaim(q, time.Now())
}

// Accepted counts those of the drafts, which the store has accepted, that wait to be
// claimed, and tells claims of them.
func (r *Runner) Accepted(drafts []job.Draft) {
	r.mu.Lock()
	waiting := r.countWaiting(drafts)
	r.mu.Unlock()
	r.config.Hub.Accepted(waiting...)
}

// countWaiting counts the drafts that wait, and says where to look for them. The caller
// holds mu.
func (r *Runner) countWaiting(drafts []job.Draft) []store.Hint {
	waiting := drafts
	for i := range drafts {
		d := &drafts[i]
		if beganHere(d) {
			if len(waiting) == len(drafts) {
				waiting = slices.Clone(drafts[:i])
			}
			continue
		}
		if len(waiting) < len(drafts) {
			waiting = append(waiting, *d)
		}
		if q := r.named[d.Queue]; q != nil && r.phase == phaseWorking {
			q.unseen.own++
		}
	}
	return wake.Hints(waiting)
}

// beganHere reports whether a draft was handed over. The caller holds mu.
func beganHere(d *job.Draft) bool {
	if d.HandOver == nil {
		return false
	}
	v, ok := d.HandOver.Taker.(*reservation)
	return ok && v.begins
}

// GoBy says of which revision the settings are that this process goes by. It is the
// last to be told of a change.
func (r *Runner) GoBy(revision int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision = revision
}
