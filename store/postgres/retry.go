package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlwork/pawl/job"
)

// repeatable says what may be done when the answer of a commit was lost.
type repeatable uint8

const (
	// unlessUnknown: a second time would answer something else, so its caller is
	// told ErrOutcomeUnknown and decides.
	unlessUnknown repeatable = iota
	// always: the transition is fenced or idempotent, or finds out by itself
	// whether it happened before.
	always
	// reading: nothing is changed, so that no outcome can be unknown.
	reading
)

// A passing fault is tried again this often, with waits that add up to about two
// seconds. Longer outages are for the caller, who knows how long it can wait.
const (
	tries     = 7
	firstWait = 20 * time.Millisecond
	lastWait  = time.Second
	// attemptLimit bounds one try: a connection that is dead without having been
	// closed says nothing for ever.
	attemptLimit = 20 * time.Second
)

// retry runs a transition until it is answered for good. again tells it that an
// earlier try may have been committed.
func (s *DB) retry(ctx context.Context, doing string, may repeatable, try func(ctx context.Context, again bool) error) error {
	return s.retryWithin(ctx, s.tryTimeout, doing, may, try)
}

// retryWithin is retry for tries that need more time.
func (s *DB) retryWithin(ctx context.Context, limit time.Duration, doing string, may repeatable, try func(ctx context.Context, again bool) error) error {
	unknown := false
	for n := 1; ; n++ {
		err := attempt(ctx, limit, unknown, try)
		if err == nil {
			return nil
		}
		f := faultOf(err)
		unknown = unknown || f.unknown && may != reading
		if ctx.Err() != nil {
			return lost(doing, context.Cause(ctx), unknown)
		}
		if !f.passing || n == tries || unknown && may == unlessUnknown {
			return lost(doing, f.err, unknown)
		}
		if !pause(ctx, n) {
			return lost(doing, context.Cause(ctx), unknown)
		}
	}
}

func attempt(ctx context.Context, limit time.Duration, again bool, try func(ctx context.Context, again bool) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return try(ctx, again)
}

// pause waits before try n+1, longer each time and spread, so that processes
// which failed together do not come back together.
func pause(ctx context.Context, n int) bool {
	d := lastWait
	if n < tries { // beyond, the shift would overflow: who waits for a lock waits often
		d = min(firstWait<<(n-1), lastWait)
	}
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lost explains an error, and says when the outcome is unknown. That it was
// blocked stays known, for callers that can do something about it.
func lost(doing string, err error, unknown bool) error {
	explained := explain(doing, err)
	if unknown {
		explained = fmt.Errorf("%s: %w: %w", doing, job.ErrOutcomeUnknown, err)
	}
	if blocking(codeOf(err)) {
		return fault{err: explained, unknown: unknown, blocked: true}.asError()
	}
	return explained
}

// faulted carries a fault through functions that return errors.
type faulted struct{ fault }

func (f *faulted) Error() string { return f.err.Error() }
func (f *faulted) Unwrap() error { return f.err }

// asError carries the fault on; faultOf finds it again.
func (f fault) asError() error { return &faulted{f} }

func faultOf(err error) fault {
	var f *faulted
	if errors.As(err, &f) {
		return f.fault
	}
	return fault{err: err}
}
