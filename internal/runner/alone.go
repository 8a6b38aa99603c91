package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A job that was lost with its process before is a suspect: it may be what
// kills processes. It runs alone in its process, so that bystanders do not die
// with it: nothing else starts, what runs finishes and is stored, then the
// suspect runs, then all goes on. Prefetched jobs have not begun; should the
// process die they go back free of charge.

// suspects takes at most one suspect in and gives the others back: they count
// as begun, and would be blamed for the death of the first. They may be taken
// again as soon as it has run, so that all that a dead process held is soon
// through. In a process that is not going to be empty (a handler is stuck, or
// the last suspect has waited in vain) none is taken for a while: it would only
// hold up the others. The caller holds mu.
func (r *Runner) suspects(tasks []*Task, now time.Time) {
	var delay time.Duration
	hopeless := r.anyStuck() || now.Before(r.crowded)
	if hopeless {
		delay = r.config.AloneDelay
	}
	for _, t := range tasks {
		if r.suspect == nil && !hopeless {
			t.claimed = now
			r.suspect = t
			r.signal(r.claimWanted)
			continue
		}
		r.giveBack(t, delay)
	}
}

// runSuspect starts the suspect once nothing else runs and every end of the
// others is stored. Its beginning is committed before it begins.
func (r *Runner) runSuspect(ctx context.Context) error {
	r.mu.Lock()
	t := r.suspect
	if t == nil || r.alone || len(r.running)+len(r.ending)+len(r.inflight) > 0 {
		r.mu.Unlock()
		return nil
	}
	marked := t.marked
	r.mu.Unlock()
	if !marked {
		limited, cancel := r.limited(ctx)
		defer cancel()
		if _, err := r.store.Beat(limited, store.Beat{Worker: t.worker, Begun: []store.RunRef{t.Ref()}}); err != nil {
			return fmt.Errorf("mark the suspect %s as begun: %w", t.Job.ID, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspect != t || !r.healthy || r.stopping {
		return nil
	}
	t.marked = true
	r.alone = true
	r.stats.Alone++
	r.start(t)
	return nil
}

// tooLongAlone gives the suspect back, to be offered again later, when the
// others did not finish in time. The caller holds mu.
func (r *Runner) tooLongAlone(now time.Time) {
	t := r.suspect
	if t == nil || r.alone || now.Sub(t.claimed) < r.config.AloneWait {
		return
	}
	r.log.Warn("a suspect job could not run alone in time and goes back", "job", t.Job.ID, "kind", t.Job.Kind,
		"lost", t.Job.Lost, "running", len(r.running), "again in", r.config.AloneDelay)
	r.suspect, r.crowded = nil, now.Add(r.config.AloneDelay)
	r.giveBack(t, r.config.AloneDelay)
	r.startReady()
	r.signal(r.claimWanted)
}

// giveBack ends a run that has not started, free of charge. The caller holds mu.
func (r *Runner) giveBack(t *Task, delay time.Duration) {
	t.outcome = job.Outcome{Kind: job.GivenBack}
	t.end = t.decide(t.outcome)
	t.end.Delay = delay
	t.cancel(context.Canceled)
	r.stats.Released++
	r.hand(t)
}
