package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A run counts as lost with its process only if its handler had begun, as the
// store knows. For most runs it is told afterwards, if they last (markAfter), so
// that nothing waits for it. A job that was taken back from a lost worker before
// is different: it may end the process at once, every time. Its beginning is
// committed before it begins, so each such end counts, and no other.

// startMarked starts the jobs whose beginning has to be committed first and for
// which slots are kept.
func (r *Runner) startMarked(ctx context.Context) error {
	r.mu.Lock()
	tasks := r.tasks.lists[placeMarking].copy()
	r.mu.Unlock()
	if len(tasks) == 0 {
		return nil
	}
	err := r.startOnceMarked(ctx, tasks)
	if err == nil || unclear(err) || unavailable(err) {
		return err
	}
	// One of the rows may be the cause: each by itself, so that it costs no other (P8).
	for _, t := range tasks {
		if err := r.startOnceMarked(ctx, []*Task{t}); err != nil {
			r.mu.Lock()
			if r.unmark(t) {
				r.cannotBegin(t, err)
			}
			r.mu.Unlock()
		}
	}
	return nil
}

// cannotBegin gives a job back whose beginning is not stored: its handler must not
// begin. The caller holds mu.
func (r *Runner) cannotBegin(t *Task, err error) {
	r.log.Error("the beginning of a run cannot be stored, its job goes back", "job", t.Job.ID, "kind", t.Job.Kind, "error", err)
	r.giveBack(t, r.config.AloneDelay)
	if t == r.suspect.task {
		r.suspectEnded()
	}
}

var errHeld = errors.New("an open transaction holds its job")

// startOnceMarked commits that handlers begin, and starts them.
func (r *Runner) startOnceMarked(ctx context.Context, tasks []*Task) error {
	verdicts, err := r.markBegun(ctx, tasks...)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, t := range tasks {
		if !r.unmark(t) {
			continue // it was given back, cancelled or lost meanwhile
		}
		switch {
		case verdicts[i] == job.Locked:
			r.cannotBegin(t, errHeld)
		case verdicts[i] != job.Applied:
			r.loseLease(t)
			if t == r.suspect.task {
				r.suspectEnded()
			}
		case !r.lease.Healthy || r.stopping() || t.queue.running >= t.queue.slots:
			// The portion of a total may have become smaller meanwhile, and be used by
			// another: this one would begin beyond the total, not go on beyond it.
			r.tasks.moveFirst(t, placeFirst)
		default:
			r.start(t)
		}
	}
	r.startReady()
	return nil
}

// markBegun commits that handlers begin. Only those whose verdict is Applied may.
// The tasks are of one worker.
func (r *Runner) markBegun(ctx context.Context, tasks ...*Task) (verdicts []job.Verdict, err error) {
	notes := make([]store.Note, len(tasks))
	for i, t := range tasks {
		notes[i] = store.Note{RunRef: t.Ref(), Begun: true}
	}
	limited, cancel := r.limited(ctx)
	defer cancel()
	verdicts, err = r.store.Note(limited, tasks[0].worker, notes)
	switch {
	case errors.Is(err, job.ErrWorkerLost):
		return refuseAll(tasks), nil
	case err != nil:
		return nil, fmt.Errorf("mark %d runs as begun: %w", len(tasks), err)
	case len(verdicts) != len(tasks):
		return nil, fmt.Errorf("mark %d runs as begun: %d verdicts", len(tasks), len(verdicts))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, t := range tasks {
		t.marked = verdicts[i] == job.Applied
	}
	return verdicts, nil
}

// mark keeps a slot for a task whose beginning is about to be committed. The
// caller holds mu.
func (r *Runner) mark(t *Task) {
	r.tasks.move(t, placeMarking)
	r.signal(r.claimWanted)
}

// unmark frees that slot, and reports false when the task was taken away
// meanwhile. The caller holds mu.
func (r *Runner) unmark(t *Task) bool {
	if t.place != placeMarking {
		return false
	}
	r.tasks.move(t, placeNone)
	return true
}

// takeUnstarted removes the tasks that match from where they wait to start, and
// returns them. The caller holds mu.
func (r *Runner) takeUnstarted(match func(*Task) bool) []*Task {
	var taken []*Task
	for _, q := range r.queues {
		taken = append(taken, q.first.where(match)...)
		taken = append(taken, q.ready.where(match)...)
	}
	taken = append(taken, r.tasks.lists[placeMarking].where(match)...)
	taken = append(taken, r.tasks.lists[placeSuspect].where(match)...)
	for _, t := range taken {
		r.tasks.move(t, placeNone)
	}
	for _, t := range taken {
		if t == r.suspect.task {
			r.suspectEnded()
		}
	}
	return taken
}
