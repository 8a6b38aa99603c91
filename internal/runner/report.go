package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// reportHeld tells the store which runs this worker holds. Jobs leased to it
// that it does not hold (the answer of their claim was lost) go back; runs
// that are not its own are cancelled. It is called by the claim loop, so that
// no claim is under way, and nothing is handed over meanwhile: what is leased after the
// list was made would look as if nobody held it. What is being handed over is listed,
// and is not stale when the store does not know of it yet.
func (r *Runner) reportHeld(ctx context.Context, worker job.WorkerID) error {
	r.mu.Lock()
	held := r.held(worker)
	coming := r.tasks.lists[placeReserved].copy()
	r.claims.unclear, r.reporting = false, true
	r.mu.Unlock()
	limited, cancel := r.limited(ctx)
	defer cancel()
	answer, err := r.store.ReportRuns(limited, worker, held)
	r.mu.Lock()
	r.reporting = false
	r.mu.Unlock()
	if errors.Is(err, job.ErrWorkerLost) {
		r.member.Lost(worker)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.claims.unclear = true
		return fmt.Errorf("report the runs held: %w", err)
	}
	r.stats.Returned += uint64(answer.Returned)
	answer.Stale = slices.DeleteFunc(answer.Stale, func(run store.RunRef) bool {
		return slices.ContainsFunc(coming, func(t *Task) bool { return t.Ref() == run })
	})
	for t := range r.tasks.in(placeRunning) {
		// One that ends in a transaction, or whose end is on its way, is over, not lost.
		if slices.Contains(answer.Stale, t.Ref()) && !t.tx().ending() {
			t.ownership = orphaned
			r.loseLease(t)
		}
	}
	r.takeUnstarted(func(t *Task) bool { return slices.Contains(answer.Stale, t.Ref()) })
	if answer.Returned > 0 {
		for _, q := range r.queues {
			q.lookAgain()
		}
	}
	return nil
}

// held lists every run of the worker, wherever it is. The caller holds mu.
func (r *Runner) held(worker job.WorkerID) []store.RunRef {
	var refs []store.RunRef
	add := func(l *list) {
		for t := range l.all() {
			if t.worker == worker && t.ownership != abandoned {
				refs = append(refs, t.Ref())
			}
		}
	}
	for p := range r.tasks.lists {
		if place(p) != placeOver {
			add(&r.tasks.lists[p])
		}
	}
	for _, q := range r.queues {
		add(&q.first)
		add(&q.ready)
	}
	return refs
}
