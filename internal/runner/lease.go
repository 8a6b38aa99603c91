package runner

import (
	"errors"
	"time"

	"github.com/pawlwork/pawl/internal/member"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// host is the runner as its member sees it. Its methods are called under the
// member's lock and take mu: never call the member while mu is held.
type host struct{ *Runner }

// Begun lists the runs that have begun and that the store does not know of.
func (r host) Begun() []store.RunRef {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begunSince(time.Now())
}

// Serves is what the store is to know of the queues.
func (r host) Serves() *store.Serves {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.serves
}

// Queues lists the queues that are claimed from.
func (r host) Queues() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queueNames()
}

// Beaten takes the answer of a beat over.
func (r host) Beaten(b member.Renewal) {
	r.revised(b.Answer.Revision)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease = b.Lease
	r.ends.applied++
	r.offset = time.Until(b.Answer.Now) // the store's clock minus ours
	r.marked(b.Begun)
	r.cancelRuns(b.Answer.Cancels, job.ErrCancelled)
	if b.Over {
		return
	}
	for _, q := range r.queues {
		if q.setting.Total > 0 {
			// What was claimed ahead for more slots goes back in a moment (staleReady).
			// The answer may be of before the queue was changed.
			q.slots = min(member.Portion(q.name, q.slots, b.Answer), q.setting.Workers, q.setting.Total)
		}
	}
	r.startReady()
	r.signal(r.claimWanted)
}

// BeatFailed ends Run if no beat can ever succeed. Who answers next may be a
// standby that was promoted and misses the last commits: what is held is reported
// to it at once.
func (r host) BeatFailed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims.unclear = true
	if errors.Is(err, store.ErrClosed) {
		select {
		case r.fatal <- err:
		default:
		}
	}
}

// Expired cancels the handlers.
func (r host) Expired(l member.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease = l
	r.claims.unclear = true
	r.log.Warn("no heartbeat succeeded in time, handlers are cancelled", "since", l.Beaten, "running", r.tasks.count(placeRunning))
	for t := range r.tasks.in(placeRunning) {
		r.loseLease(t)
	}
	r.leaseOver()
}

// leaseOver tells what else works under the lease.
func (r host) leaseOver() {
	if r.config.LeaseOver != nil {
		r.config.LeaseOver()
	}
}

// Lost forgets everything the lost worker held, and asks to register anew. What
// its handlers come to is dropped, except a success, which the store refuses by
// itself unless the job has not been rescued yet.
func (r host) Lost(worker job.WorkerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Warn("this worker was declared lost, its handlers are cancelled", "worker", worker, "running", r.tasks.count(placeRunning))
	r.lease.Worker, r.lease.Healthy = 0, false
	r.noPortions()
	for t := range r.tasks.in(placeRunning) {
		t.ownership = orphaned
		r.loseLease(t)
	}
	for _, t := range r.takeUnstarted(func(*Task) bool { return true }) {
		r.loseLease(t)
	}
	r.leaseOver()
	r.wakeBeat() // which registers anew
}

// Redated looks at all queues.
func (r host) Redated() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.queues {
		q.lookBy(time.Now())
	}
	r.signal(r.claimWanted)
}

// noPortions takes all portions away: this process is not registered. The caller
// holds mu.
func (r *Runner) noPortions() {
	for _, q := range r.queues {
		if q.setting.Total > 0 {
			q.slots = 0
		}
	}
}

// loseLease tells one handler. The caller holds mu.
func (r *Runner) loseLease(t *Task) {
	if t.cause() == nil {
		r.stats.LeasesLost++
		r.config.Meter.Count(t.Now(), t.Job.Queue, t.Job.Kind, metric.Lost)
		t.cancel(job.ErrLeaseLost)
	}
}

// Member is this process among the workers.
func (r *Runner) Member() *member.Member { return r.member }
