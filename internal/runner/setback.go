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

// tempo compares the store's clock with this process's own between two beats.
// The latter cannot be set: it is only ever subtracted from itself. The caller
// holds mu.
//
// A store whose clock was set forward makes every worker look late until it has
// beaten again, so this one's own steady time begins anew. One whose clock was set
// back has jobs that were ready and are no longer: they are redated.
func (r *Runner) tempo(sent time.Time, answer store.Beaten) {
	before, answered, now := r.storeBeat, r.answered, time.Now()
	r.storeBeat, r.answered = answer.Now, now
	if before.IsZero() {
		return
	}
	// Each answer was made some time between its question and its arrival.
	least, most := before.Add(sent.Sub(answered)), before.Add(now.Sub(r.beaten))
	if by := answer.Now.Sub(most); by > r.config.LostAfter/3 {
		r.log.Warn("the store's clock was set forward, or this machine slept", "by", by)
		r.steady = sent
	}
	if by := least.Sub(answer.Now); by > leastSetback {
		r.log.Warn("the store's clock was set back", "by", by)
		r.setback = &setback{was: most, since: r.beaten}
	}
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
		n, err := r.store.Redate(ctx, store.Setback{Queues: r.queueNames(), Was: met.was, Within: within}, redateLimit)
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
