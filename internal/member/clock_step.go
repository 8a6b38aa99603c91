package member

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

// Heard takes note of the store's clock as an answer told it, and says whether it
// was set back: then the next beat, which should come at once, redates.
func (m *Member) Heard(sent, now time.Time) (back bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tempo(sent, now)
}

// tempo compares the store's clock with this process's own between two answers
// that told it: of beats, and of claims, since a clock may be set twice between
// two beats. Our own cannot be set: it is only ever subtracted from itself. It
// says whether the store's was set back. The caller holds mu.
//
// A store whose clock was set forward makes every worker look late until it has
// beaten again, so this one's own steady time begins anew. One whose clock was set
// back has jobs that were ready and are no longer: they are redated.
func (m *Member) tempo(sent, now time.Time) (back bool) {
	before := m.heard
	m.heard = reading{now, sent, time.Now()}
	if before.now.IsZero() {
		return false
	}
	least, most := before.now.Add(sent.Sub(before.answered)), before.now.Add(m.heard.answered.Sub(before.sent))
	if by := now.Sub(most); by > m.config.Worker.LostAfter/3 {
		m.log.Warn("the store's clock was set forward, or this machine slept", "by", by)
		if !m.steady.IsZero() {
			m.steady = sent
		}
	}
	by := least.Sub(now)
	if by <= leastSetback {
		return false
	}
	m.log.Warn("the store's clock was set back", "by", by)
	met := &setback{was: most, since: before.sent}
	if p := m.setback; p != nil { // and its jobs are not redated yet
		met.since, met.within = p.since, p.within
		if p.was.After(most) {
			met.was = p.was
		}
	}
	m.setback = met
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
func (m *Member) foundSetback(ctx context.Context, now time.Time) error {
	workers, err := m.store.Registry(ctx)
	if err != nil {
		return fmt.Errorf("look for a step of the clock: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked = true
	for _, w := range workers {
		if was := w.Beat.Add(m.config.Beat); !w.Lost && w.Beat.Sub(now) > leastSetback && (m.setback == nil || was.After(m.setback.was)) {
			m.setback = &setback{was: was, within: 1000 * time.Hour}
		}
	}
	return nil
}

// redate makes the jobs ready that were before the step. What fails is tried
// again with the next beat.
func (m *Member) redate(ctx context.Context) error {
	m.mu.Lock()
	met := m.setback
	m.mu.Unlock()
	if met == nil {
		return nil
	}
	for redated := 0; ; {
		within := met.within
		if within == 0 {
			within = time.Since(met.since)
		}
		n, err := m.store.MakeDueAgain(ctx, store.ClockStep{Queues: m.host.Queues(), Was: met.was, Within: within}, redateLimit)
		if err != nil {
			return fmt.Errorf("redate jobs after a step of the clock: %w", err)
		}
		redated += n
		if n == redateLimit {
			continue
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.setback == met {
			m.setback = nil
		}
		if redated == 0 {
			return nil
		}
		m.log.Info("jobs were ready before the clock was set back, and are again", "jobs", redated)
		m.host.Redated()
		return nil
	}
}
