package runner

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
)

// A job that was lost with its process more than once is a suspect: it may be
// what ends processes (job.Job.Suspect). It runs alone in its process, so that
// others do not die with it:
//
//  1. The store is asked. One process of the cluster empties itself at a time,
//     lest a few suspects bring the fleet to a standstill.
//  2. Nothing else starts here; what runs finishes and is stored. Prefetched jobs
//     have not begun: should the process die they go back free of charge.
//  3. The suspect runs, and then all goes on.
//
// Where one of the first two fails, the suspect is deferred: it goes back for a
// while, which is counted, so that a process with less to do may take it. Deferred
// too often it runs beside others, for it must not starve; so it does in a process
// that was not empty once since it waited for that in vain. There are never two
// suspects in one process.

// suspect is the one suspect of a process.
type suspect struct {
	task  *Task // nil: none
	phase suspectPhase
	since time.Time // it waits for the others
}

// emptying is what a process remembers of the suspects it had.
type emptying struct {
	before     *Task // the last one that ran
	neverEmpty bool  // one has waited in vain for this process to become empty, and it was not since
}

type suspectPhase uint8

const (
	suspectAsks    suspectPhase = iota // whether this process may empty itself
	suspectWaits                       // for the others to finish
	suspectAlone                       // it runs, and nothing else does
	suspectBesides                     // it runs, or is about to, beside others
)

// holdsUp reports whether nothing else may start.
func (s *suspect) holdsUp() bool {
	return s.task != nil && (s.phase == suspectWaits || s.phase == suspectAlone)
}

// idle is the suspect while it waits to run alone; nil otherwise.
func (s *suspect) idle() *Task {
	if s.task != nil && s.task.place == placeSuspect {
		return s.task
	}
	return nil
}

// suspects takes at most one suspect in and gives the others back. While this one
// runs alone they may be taken again as soon as it has, so that all that a dead
// process held is soon through. The caller holds mu.
func (r *Runner) suspects(tasks []*Task) {
	for _, t := range tasks {
		switch {
		case r.suspect.holdsUp():
			r.giveBack(t, 0)
		case r.suspect.task != nil: // claims go on meanwhile, and must not take it again and again
			r.giveBack(t, min(r.config.AloneDelay, max(time.Duration(t.queue.mean), 100*time.Millisecond)))
		case !t.Job.Alone() || r.emptying.neverEmpty && t.Job.Deferred > 0:
			r.suspect = suspect{task: t, phase: suspectBesides}
			r.tasks.move(t, placeFirst)
			r.startReady()
		case r.emptying.neverEmpty || r.anyStuck():
			r.deferSuspect(t)
		default:
			r.suspect = suspect{task: t}
			r.tasks.move(t, placeSuspect)
			r.signal(r.claimWanted)
		}
	}
}

// runSuspect does what comes next for the suspect: asks, or starts it once nothing
// else runs and every end of the others is stored.
func (r *Runner) runSuspect(ctx context.Context, now time.Time) error {
	r.mu.Lock()
	s, idle := r.suspect, r.suspect.idle() != nil
	empty := r.tasks.count(placeRunning, placeMarking, placeEnding, placeInflight) == 0
	before := r.emptying.before // must be over for the store as well: it would be in the way of this one
	unstored := before != nil && (before.place == placeEnding || before.place == placeInflight)
	r.mu.Unlock()
	if !idle || unstored {
		return nil
	}
	if s.phase == suspectAsks {
		limited, cancel := r.limited(ctx)
		defer cancel()
		mine, err := r.store.Alone(limited, s.task.worker, s.task.Ref())
		if err != nil { // that costs the suspect its turn, not the others their claims (P8)
			r.log.Warn("cannot ask whether a suspect job may run alone, it goes back", "job", s.task.Job.ID, "error", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case r.suspect.task != s.task:
		case !mine:
			r.suspect = suspect{}
			r.deferSuspect(s.task)
		default:
			r.suspect.phase, r.suspect.since = suspectWaits, now
			r.signal(r.claimWanted)
		}
		return nil
	}
	if !empty {
		return nil
	}
	verdicts, err := r.markBegun(ctx, s.task)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.suspect.task != s.task || !r.lease.Healthy || r.stopping():
	case verdicts[0] == job.Locked:
		r.cannotBegin(s.task, errHeld)
	case verdicts[0] != job.Applied:
		r.suspect = suspect{}
		r.tasks.move(s.task, placeNone)
		r.loseLease(s.task)
		r.startReady()
	case s.task.queue.slots == 0: // the portion of its total went to another meanwhile
		r.suspect = suspect{}
		r.giveBack(s.task, 0)
		r.startReady()
	default:
		r.suspect.phase = suspectAlone
		r.stats.Alone++
		r.start(s.task)
	}
	return nil
}

// suspectEnded lets the others go on. The caller holds mu.
func (r *Runner) suspectEnded() {
	r.emptying.before, r.suspect = r.suspect.task, suspect{}
	r.startReady()
	r.signal(r.claimWanted) // for all queues
}

// tooLongAlone defers the suspect when the others did not finish in time. The
// caller holds mu.
func (r *Runner) tooLongAlone(now time.Time) {
	if r.suspect.task == nil || r.suspect.phase != suspectWaits || now.Sub(r.suspect.since) < r.config.AloneWait {
		return
	}
	t := r.suspect.task
	r.log.Warn("a suspect job could not run alone in time and goes back", "job", t.Job.ID, "kind", t.Job.Kind,
		"lost", t.Job.Lost, "running", r.tasks.count(placeRunning), "deferred", t.Job.Deferred+1, "again in", r.config.AloneDelay)
	r.emptying.neverEmpty = true
	r.deferSuspect(t)
	r.suspectEnded()
}

// deferSuspect gives a suspect back and counts that. The caller holds mu.
func (r *Runner) deferSuspect(t *Task) {
	r.giveBack(t, r.config.AloneDelay)
	t.end.Defer = true
	r.stats.Deferred++
}

// giveBack ends a run that has not started, free of charge. The caller holds mu.
func (r *Runner) giveBack(t *Task, delay time.Duration) {
	t.outcome = job.Outcome{Kind: job.Released}
	t.end = t.decide(t.outcome)
	t.end.Delay = delay
	t.cancel(context.Canceled)
	r.stats.Released++
	r.hand(t)
}
