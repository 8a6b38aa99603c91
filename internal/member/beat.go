package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// BeatOnce registers the worker if it is not, and renews its lease. The lease
// is counted from when the beat was sent: the store may have written it then.
func (m *Member) BeatOnce(ctx context.Context) error {
	m.mu.Lock()
	worker, done := m.lease.Worker, m.leaving && m.lease.Worker == 0
	version := m.split.version
	m.mu.Unlock()
	if done {
		return nil
	}
	begun := m.host.Begun()
	registered := worker == 0
	if registered {
		came := time.Now()
		id, err := m.store.Register(ctx, m.config.Worker)
		if err != nil {
			m.failed(err)
			return fmt.Errorf("register the worker: %w", err)
		}
		m.mu.Lock()
		m.lease.Worker, m.split.came = id, came
		m.registered++
		m.mu.Unlock()
		worker, begun = id, nil
	}
	sent := time.Now()
	answer, err := m.store.Beat(ctx, store.Beat{Worker: worker, Begun: begun, Splits: len(m.split.totals) > 0, Version: version})
	switch {
	case errors.Is(err, job.ErrWorkerLost):
		m.Lost(worker)
		return nil
	case err != nil:
		m.failed(err)
		return fmt.Errorf("beat: %w", err)
	}
	m.beaten(worker, sent, begun, answer)
	if registered && m.config.Registered != nil {
		m.config.Registered()
	}
	m.mu.Lock()
	looked := m.looked
	soon := m.split.soon(version, answer, m.config.Beat)
	m.mu.Unlock()
	if !looked {
		if err := m.foundSetback(ctx, answer.Now); err != nil {
			return err
		}
	}
	if err := m.redate(ctx); err != nil {
		return err
	}
	if soon >= 0 {
		return supervise.NextIn(soon)
	}
	return m.nextBeat()
}

// nextBeat keeps the rhythm of the store, where it has one: the beats of all its
// namespaces are sent as one. None comes later than without.
func (m *Member) nextBeat() error {
	if m.config.Rhythm == nil {
		return nil
	}
	return supervise.NextIn(time.Until(m.config.Rhythm.After(time.Now(), m.config.Beat)))
}

// beaten takes note of a beat that succeeded.
func (m *Member) beaten(worker job.WorkerID, sent time.Time, begun []store.RunRef, answer store.BeatReply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.Worker != worker {
		return
	}
	if m.steady.IsZero() || sent.Sub(m.lease.Beaten) > 2*m.config.Beat {
		m.steady = sent
	}
	m.tempo(sent, answer.Now)
	m.lease.Beaten, m.storeBeat, m.leads = sent, answer.Now, answer.Leader
	left := m.lasts() - time.Since(sent)
	if left > 0 {
		if len(m.split.totals) > 0 {
			m.split.hear(answer, m.config.Beat)
		}
		if m.timer == nil {
			m.timer = time.AfterFunc(left, m.expire)
		} else {
			m.timer.Reset(left)
		}
		m.lease.Healthy = true
	}
	m.host.Beaten(Renewal{Lease: m.lease, Begun: begun, Answer: answer, Over: left <= 0})
}

// failed ends the steady time.
func (m *Member) failed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steady = time.Time{}
	m.host.BeatFailed(err)
}

// expire ends the lease when no beat has succeeded for so long that the fleet is
// about to declare this worker lost. The store may be down for all; then the worker
// is still registered when it comes back, and the ends of its runs are accepted.
func (m *Member) expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if age := time.Since(m.lease.Beaten); age < m.lasts() || !m.lease.Healthy {
		return // renewed while the timer was firing
	}
	m.lease.Healthy = false
	m.host.Expired(m.lease)
}

func (m *Member) lasts() time.Duration { return Lasts(m.config.Worker.LostAfter) }
