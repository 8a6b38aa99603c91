package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// beatOnce registers the worker if it is not, and renews its lease. The lease
// is counted from when the beat was sent: the store may have written it then.
func (r *Runner) beatOnce(ctx context.Context) error {
	r.mu.Lock()
	worker, done := r.worker, r.stopping && r.worker == 0
	begun := r.begunSince(time.Now())
	version := r.split.version
	r.mu.Unlock()
	if done {
		return nil
	}
	registered := worker == 0
	if registered {
		came := time.Now()
		id, err := r.store.Register(ctx, store.Worker{
			Label: r.config.Label, Host: r.config.Host, Process: r.config.Boot.Process, Machine: r.config.Boot.Machine, Start: r.config.Boot.Start,
			Queues: r.queueNames(), Totals: r.split.totals, Offer: r.offer, LostAfter: r.config.LostAfter,
		})
		if err != nil {
			r.beatFailed(err)
			return fmt.Errorf("register the worker: %w", err)
		}
		r.mu.Lock()
		r.worker, r.split.came = id, came
		r.stats.Registered++
		r.mu.Unlock()
		worker, begun = id, nil
	}
	sent := time.Now()
	answer, err := r.store.Beat(ctx, store.Beat{Worker: worker, Begun: begun, Splits: len(r.split.totals) > 0, Version: version})
	switch {
	case errors.Is(err, job.ErrWorkerLost):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.workerLost(worker)
		return nil
	case err != nil:
		r.beatFailed(err)
		return fmt.Errorf("beat: %w", err)
	}
	r.beat(worker, sent, begun, answer)
	if registered && r.config.Registered != nil {
		r.config.Registered()
	}
	r.mu.Lock()
	looked := r.looked
	soon := r.split.soon(version, answer, r.config.Beat)
	r.mu.Unlock()
	if !looked {
		if err := r.foundSetback(ctx, answer.Now); err != nil {
			return err
		}
	}
	if err := r.redate(ctx); err != nil {
		return err
	}
	if soon >= 0 {
		return supervise.NextIn(soon)
	}
	return nil
}

// wakeBeat lets the next beat come at once. The caller holds mu.
func (r *Runner) wakeBeat() {
	if r.tree == nil || r.stopping {
		return
	}
	if err := r.tree.Wake("beat"); err != nil {
		r.log.Error("cannot beat at once", "error", err)
	}
}

// beat takes note of a beat that succeeded.
func (r *Runner) beat(worker job.WorkerID, sent time.Time, begun []store.RunRef, answer store.BeatReply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.worker != worker {
		return
	}
	if r.steady.IsZero() || sent.Sub(r.beaten) > 2*r.config.Beat {
		r.steady = sent
	}
	r.tempo(sent, answer.Now)
	r.beaten, r.storeBeat = sent, answer.Now
	r.applied++
	r.offset = time.Until(answer.Now) // the store's clock minus ours
	r.marked(begun)
	r.cancelRuns(answer.Cancels, job.ErrCancelled)
	left := r.config.LostAfter - r.config.leaseMargin() - time.Since(sent)
	if left <= 0 {
		return // the answer took as long as a lease lasts
	}
	r.splitTotals(answer)
	if r.leaseTimer == nil {
		r.leaseTimer = time.AfterFunc(left, r.leaseExpired)
	} else {
		r.leaseTimer.Reset(left)
	}
	r.healthy = true
	r.startReady()
	r.signal(r.claimWanted)
}

// beatFailed ends the steady time, and Run if no beat can ever succeed. Who
// answers next may be a standby that was promoted and misses the last commits:
// what is held is reported to it at once.
func (r *Runner) beatFailed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steady = time.Time{}
	r.claims.unclear = true
	if errors.Is(err, store.ErrClosed) {
		select {
		case r.fatal <- err:
		default:
		}
	}
}

// leaseExpired cancels the handlers when no beat has succeeded for so long that
// the fleet is about to declare this worker lost. The store may be down for all;
// then the worker is still registered when it comes back, and their
// ends are accepted.
func (r *Runner) leaseExpired() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := time.Since(r.beaten); age < r.config.LostAfter-r.config.leaseMargin() || !r.healthy {
		return // renewed while the timer was firing
	}
	r.healthy = false
	r.claims.unclear = true
	r.log.Warn("no heartbeat succeeded in time, handlers are cancelled", "since", r.beaten, "running", r.tasks.count(placeRunning))
	for t := range r.tasks.in(placeRunning) {
		r.loseLease(t)
	}
}

// workerLost forgets everything the lost worker held, and asks to register
// anew. What its handlers come to is dropped, except a success, which the store
// refuses by itself unless the job has not been rescued yet. The caller holds mu.
func (r *Runner) workerLost(worker job.WorkerID) {
	if r.worker != worker {
		return // known already
	}
	r.log.Warn("this worker was declared lost, its handlers are cancelled", "worker", worker, "running", r.tasks.count(placeRunning))
	r.worker, r.healthy, r.steady = 0, false, time.Time{}
	r.forgetSplit()
	for t := range r.tasks.in(placeRunning) {
		t.ownership = orphaned
		r.loseLease(t)
	}
	for _, t := range r.takeUnstarted(func(*Task) bool { return true }) {
		r.loseLease(t)
	}
	r.wakeBeat() // which registers anew
}

// loseLease tells one handler. The caller holds mu.
func (r *Runner) loseLease(t *Task) {
	if t.cause() == nil {
		r.stats.LeasesLost++
		t.cancel(job.ErrLeaseLost)
	}
}

// Worker is the registered worker, 0 when there is none.
func (r *Runner) Worker() job.WorkerID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.worker
}

// Steady is the registered worker, the store's time at its last beat, and how
// long its beats have succeeded without a gap, 0 when the last one is overdue.
// Only who has been steady for longer than the lost-after period may declare
// others lost.
func (r *Runner) Steady() (worker job.WorkerID, beat time.Time, steady time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.steady.IsZero() || r.worker == 0 || time.Since(r.beaten) > 2*r.config.Beat {
		return r.worker, r.storeBeat, 0
	}
	return r.worker, r.storeBeat, time.Since(r.steady)
}
