package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// child is one service of a running tree. Its goroutine is supervise; everything else about it
// happens under the ledger's lock or through the two channels.
type child struct {
	ledger
	name   string
	kind   Kind
	policy Policy
	logger *slog.Logger

	// attempt runs the service until it ends or fails, and says when it began to run.
	// It returns a nil error when the service is done or its context has ended.
	attempt func(ctx context.Context) (began time.Time, err error)

	cancel  context.CancelCauseFunc // nil until launched
	ended   chan struct{}           // closed when the service has ended for good
	failure error                   // why it failed; written before ended is closed, read after
	onEnd   func(failed bool)       // tells the supervisor, after ended is closed
}

func newMember(name string, s Service, c Config, onEnd func(failed bool)) *child {
	return &child{
		ledger: ledger{status: Status{Name: name, Kind: s.kind, State: StateNew}},
		name:   name,
		kind:   s.kind,
		policy: s.effectivePolicy(),
		logger: c.Logger.With("service", name),
		ended:  make(chan struct{}),
		onEnd:  onEnd,
	}
}

// plain makes attempt of the function of a Loop or Once: one attempt is one call.
func (m *child) plain(run func(context.Context) error) {
	m.attempt = func(ctx context.Context) (time.Time, error) {
		began := time.Now()
		m.runBegan(began)
		err := call(func() error { return run(ctx) })
		m.runEnded(time.Now(), err == nil)
		if err != nil && !interrupted(ctx, err) {
			m.reportFailure(ctx, m.logger, err)
		}
		return began, err
	}
}

// supervise runs the service until it is done, stopped, or beyond its policy.
func (m *child) supervise(ctx context.Context) {
	account := m.policy.open()
	for {
		began, err := m.attempt(ctx)
		switch stopping := ctx.Err() != nil; {
		case stopping && isPanic(err):
			// No restart can follow, yet a panic is never a clean end (S4).
			m.end(StateFailed, fmt.Errorf("service %q while stopping: %w", m.name, err))
			return
		case err == nil && (m.kind == KindOnce || !stopping):
			m.end(StateDone, nil) // a Once that succeeded is done, even when a stop had been asked for
			return
		case stopping:
			m.end(StateStopped, nil)
			return
		}

		now := time.Now()
		pause, again := account.failed(now, now.Sub(began))
		if !again {
			used := m.read().Restarts
			m.logger.ErrorContext(ctx, "service gave up", "policy", m.policy.String(), "restarts", used)
			m.end(StateFailed, fmt.Errorf("service %q: %w (policy: %v; restarts: %d): %w", m.name, ErrGaveUp, m.policy, used, err))
			return
		}
		count := m.restarts(now.Add(pause))
		m.logger.WarnContext(ctx, "service restarts", "pause", pause, "restarts", count)
		if !sleep(ctx, pause) {
			m.end(StateStopped, nil)
			return
		}
	}
}

// reportFailure counts and logs one failed run. It is logged here, where it happened, because nobody
// called this run: Wait tells only the end of a service, not what led there.
func (m *child) reportFailure(ctx context.Context, logger *slog.Logger, err error) {
	m.runFailed(time.Now(), err)
	if panicked, ok := err.(*PanicError); ok {
		logger.ErrorContext(ctx, "service panicked", "error", err, "stack", string(panicked.Stack))
		return
	}
	logger.WarnContext(ctx, "service failed", "error", err)
}

// end is called once, by whoever owns the member: its goroutine, or Stop if it was never launched.
func (m *child) end(state State, failure error) {
	m.failure = failure
	m.enter(state, time.Time{})
	close(m.ended)
	m.onEnd(failure != nil)
}

// askToStop ends the context of a launched member. Asking again changes nothing.
func (m *child) askToStop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopping = true
	if m.cancel != nil {
		m.cancel(ErrStopped)
	}
}

func (m *child) hasEnded() bool {
	select {
	case <-m.ended:
		return true
	default:
		return false
	}
}

// interrupted tells the answer of a run whose context we ended from a failure of its own.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ErrStopped))
}

// sleep waits for d and reports whether it did; false means that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}
