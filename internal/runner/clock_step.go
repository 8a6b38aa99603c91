package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/store"
)

const (
	// leastSetback is the least step that is noticed. A smaller one delays jobs
	// by less than that.
	leastSetback = time.Second
	redateLimit  = 500
)

// reading is the store's clock as an answer told it.
type reading struct {
	now            time.Time
	sent, answered time.Time // by our own clock: it was read in between
}

// tempo compares the store's clock with this process's own between two answers
// that told it: of beats, and of claims, since a clock may be set twice between
// two beats. Our own cannot be set: it is only ever subtracted from itself. It
// says whether the store's was set back. The caller holds mu.
//
// A store whose clock was set forward makes every worker look late until it has
// beaten again, so this one's own steady time begins anew. One whose clock was set
// back has jobs that were ready and are no longer: they are redated.
func (r *Runner) tempo(sent, now time.Time) (back bool) {
	before := r.heard
	r.heard = reading{now, sent, time.Now()}
	if before.now.IsZero() {
		return false
	}
	least, most := before.now.Add(sent.Sub(before.answered)), before.now.Add(r.heard.answered.Sub(before.sent))
	if by := now.Sub(most); by > r.config.LostAfter/3 {
		r.log.Warn("the store's clock was set forward, or this machine slept", "by", by)
		if !r.steady.IsZero() {
			r.steady = sent
		}
	}
	by := least.Sub(now)
	if by <= leastSetback {
		return false
	}
	r.log.Warn("the store's clock was set back", "by", by)
	met := &setback{was: most, since: before.sent}
	if p := r.setback; p != nil { // and its jobs are not redated yet
		met.since, met.within = p.since, p.within
		if p.was.After(most) {
			met.was = p.was
		}
	}
	r.setback = met
	return true
}

// setback is a step of the store's clock whose jobs are still to be redated.
type setback struct {
	was    time.Time     // what it would have shown
	since  time.Time     // by our clock: it happened after that
	within time.Duration // instead of since, where the step was not met
}

// foundSetback looks once for a step that happened while this process was not
// there: somebody else's beat lies ahead of the clock. Then only jobs that
// were created ahead of it as well are known to come from before.
func (r *Runner) foundSetback(ctx context.Context, now time.Time) error {
	workers, err := r.store.Registry(ctx)
	if err != nil {
		return fmt.Errorf("look for a step of the clock: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = true
	for _, w := range workers {
		if was := w.Beat.Add(r.config.Beat); !w.Lost && w.Beat.Sub(now) > leastSetback && (r.setback == nil || was.After(r.setback.was)) {
			r.setback = &setback{was: was, within: 1000 * time.Hour}
		}
	}
	return nil
}

// redate makes the jobs ready that were before the step. What fails is tried
// again with the next beat.
func (r *Runner) redate(ctx context.Context) error {
	r.mu.Lock()
	met := r.setback
	r.mu.Unlock()
	if met == nil {
		return nil
	}
	for redated := 0; ; {
		within := met.within
		if within == 0 {
			within = time.Since(met.since)
		}
		n, err := r.store.MakeDueAgain(ctx, store.ClockStep{Queues: r.queueNames(), Was: met.was, Within: within}, redateLimit)
		if err != nil {
			return fmt.Errorf("redate jobs after a step of the clock: %w", err)
		}
		redated += n
		if n == redateLimit {
			continue
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.setback == met {
			r.setback = nil
		}
		if redated == 0 {
			return nil
		}
		r.log.Info("jobs were ready before the clock was set back, and are again", "jobs", redated)
		for _, q := range r.queues {
			q.lookBy(time.Now())
		}
		r.signal(r.claimWanted)
		return nil
	}
}
