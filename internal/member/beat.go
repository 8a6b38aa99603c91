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
	begun, serves := m.host.Begun(), m.host.Serves()
	m.mu.Lock()
	worker, done := m.lease.Worker, m.leaving && m.lease.Worker == 0
	if len(serves.Totals) == 0 {
		m.split.forget() // when it has one again, it comes anew
	}
	version := m.split.version
	m.mu.Unlock()
	if done {
		return nil
	}
	registered := worker == 0
	if registered {
		came := time.Now()
		self := m.config.Worker
		self.Queues, self.Slots, self.Totals = serves.Queues, serves.Slots, serves.Totals
		id, err := m.store.Register(ctx, self)
		if err != nil {
			m.failed(err)
			return fmt.Errorf("register the worker: %w", err)
		}
		m.mu.Lock()
		m.lease.Worker, m.split.came = id, came
		m.registered++
		m.mu.Unlock()
		worker, begun, m.told = id, nil, serves
	}
	beat := store.Beat{Worker: worker, Begun: begun, Splits: len(serves.Totals) > 0, Version: version}
	if serves != m.told {
		beat.Serves = serves
	}
	sent := time.Now()
	answer, err := m.store.Beat(ctx, beat)
	if m.config.Called != nil {
		m.config.Called(time.Since(sent))
	}
	switch {
	case errors.Is(err, job.ErrWorkerLost):
		m.Lost(worker)
		return nil
	case err != nil:
		m.failed(err)
		return fmt.Errorf("beat: %w", err)
	}
	m.told = serves
	m.beaten(beat, sent, answer)
	if registered && m.config.Registered != nil {
		m.config.Registered()
	}
	m.mu.Lock()
	looked := m.looked
	soon := time.Duration(-1)
	if beat.Splits {
		soon = m.split.soon(version, answer, m.config.Beat)
	}
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
func (m *Member) beaten(beat store.Beat, sent time.Time, answer store.BeatReply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.Worker != beat.Worker {
		return
	}
	if m.steady.IsZero() || sent.Sub(m.lease.Beaten) > 2*m.config.Beat {
		m.steady = sent
	}
	m.tempo(sent, answer.Now)
	m.lease.Beaten, m.storeBeat, m.leads = sent, answer.Now, answer.Leader
	left := m.lasts() - time.Since(sent)
	if left > 0 {
		if beat.Splits {
			m.split.hear(answer, m.config.Beat)
		}
		if m.timer == nil {
			m.timer = time.AfterFunc(left, m.expire)
		} else {
			m.timer.Reset(left)
		}
		m.lease.Healthy = true
	}
	m.host.Beaten(Renewal{Lease: m.lease, Begun: beat.Begun, Answer: answer, Over: left <= 0})
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
