package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// noteOnce stores what running handlers have said since the last time, in as
// many calls as its bytes take.
func (r *Runner) noteOnce(ctx context.Context) error {
	r.mu.Lock()
	worker := r.lease.Worker
	tasks := make([]*Task, 0, r.tasks.count(placeRunning))
	for t := range r.tasks.in(placeRunning) {
		if t.worker == worker && t.ownership == owned {
			tasks = append(tasks, t)
		}
	}
	r.mu.Unlock()

	var notes []store.Note
	said := tasks[:0]
	for _, t := range tasks {
		t.mu.Lock()
		if note, ok := t.journal.note(t.Ref()); ok {
			notes, said = append(notes, note), append(said, t)
		}
		t.mu.Unlock()
	}
	if len(notes) == 0 {
		return nil
	}
	for len(notes) > 0 {
		n, bytes := r.noteLoad.fits(len(notes), maxFinish, func(i int) int { return weightOfNote(&notes[i]) })
		if err := r.sendNotes(ctx, worker, said[:n], notes[:n], bytes); err != nil {
			for i, t := range said[n:] {
				t.mu.Lock()
				t.journal.noted(notes[n+i], false)
				t.mu.Unlock()
			}
			return err
		}
		notes, said = notes[n:], said[n:]
	}
	return nil
}

// sendNotes stores the notes of some runs in one call.
func (r *Runner) sendNotes(ctx context.Context, worker job.WorkerID, said []*Task, notes []store.Note, bytes int) error {
	limited, cancel := r.limited(ctx)
	defer cancel()
	sent := time.Now()
	verdicts, err := r.store.Note(limited, worker, notes)
	ok := err == nil && len(verdicts) == len(notes)
	if ok {
		r.noteLoad.grow(time.Since(sent), r.config.callLimit())
	} else {
		r.noteLoad.shrink(bytes)
	}
	for i, t := range said {
		t.mu.Lock()
		t.journal.noted(notes[i], ok || unclear(err)) // rather a line less than one twice
		t.mu.Unlock()
		if ok && verdicts[i] == job.Stale && !t.tx().ending() {
			r.mu.Lock()
			if t.place == placeRunning { // else an end has overtaken the note
				t.ownership = orphaned
				r.loseLease(t)
			}
			r.mu.Unlock()
		}
	}
	if err != nil {
		return fmt.Errorf("store the notes of %d runs: %w", len(notes), err)
	}
	return nil
}
