package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Cancel cancels the handlers of these jobs that run here, at once. The store
// has been told before; runs elsewhere learn of it from there.
func (r *Runner) Cancel(ids []job.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancelWhere(func(t *Task) bool { return slices.Contains(ids, t.Job.ID) }, job.ErrCancelled)
}

// lookForCancels asks the store which runs of this worker to cancel.
func (r *Runner) lookForCancels(ctx context.Context, worker job.WorkerID) error {
	limited, cancel := r.limited(ctx)
	defer cancel()
	refs, err := r.store.Cancels(limited, worker)
	switch {
	case errors.Is(err, job.ErrWorkerLost):
		r.member.Lost(worker)
		return nil
	case err != nil:
		return fmt.Errorf("look for cancels: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancelRuns(refs, job.ErrCancelled)
	return nil
}

// cancelRuns cancels exactly these runs. The caller holds mu.
func (r *Runner) cancelRuns(refs []store.RunRef, cause error) {
	if len(refs) > 0 {
		r.cancelWhere(func(t *Task) bool { return slices.Contains(refs, t.Ref()) }, cause)
	}
}

// cancelWhere cancels the tasks that match: a handler is told, a job that has
// not started ends as cancelled. The caller holds mu.
func (r *Runner) cancelWhere(match func(*Task) bool, cause error) {
	for t := range r.tasks.in(placeRunning) {
		if match(t) {
			t.cancel(cause)
		}
	}
	called := func(t *Task) {
		t.cancel(cause)
		t.outcome = job.Outcome{Kind: job.CancelSeen}
		t.end = t.decide(t.outcome)
		r.hand(t)
	}
	for _, t := range r.takeUnstarted(match) {
		called(t)
	}
}
