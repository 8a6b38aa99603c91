package pg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Repeatable says what may be done when the answer of a commit was lost.
type Repeatable uint8

const (
	// UnlessUnknown: a second time would answer something else, so its caller is
	// told ErrOutcomeUnknown and decides.
	UnlessUnknown Repeatable = iota
	// Always: the transition is fenced or idempotent, or finds out by itself
	// whether it happened before.
	Always
	// Reading: nothing is changed, so that no outcome can be unknown.
	Reading
)

// A passing fault is tried again this often, with waits that add up to about two
// seconds. Longer outages are for the caller, who knows how long it can wait.
const (
	Tries     = 7
	firstWait = 20 * time.Millisecond
	lastWait  = time.Second
	// attemptLimit bounds one try: a connection that is dead without having been
	// closed says nothing for ever.
	attemptLimit = 20 * time.Second
)

// Retry runs a transition until it is answered for good. again tells it that an
// earlier try may have been committed.
func (s *Link) Retry(ctx context.Context, doing string, may Repeatable, try func(ctx context.Context, again bool) error) error {
	return s.RetryWithin(ctx, s.TryTimeout, doing, may, try)
}

// RetryWithin is retry for tries that need more time.
func (s *Link) RetryWithin(ctx context.Context, limit time.Duration, doing string, may Repeatable, try func(ctx context.Context, again bool) error) error {
	unknown := false
	for n := 1; ; n++ {
		err := attempt(ctx, limit, unknown, try)
		if err == nil {
			return nil
		}
		f := FaultOf(err)
		unknown = unknown || f.Unknown && may != Reading
		if ctx.Err() != nil {
			return Failure(doing, context.Cause(ctx), unknown)
		}
		if !f.Passing || n == Tries || unknown && may == UnlessUnknown {
			return Failure(doing, f.Err, unknown)
		}
		if !Pause(ctx, n) {
			return Failure(doing, context.Cause(ctx), unknown)
		}
	}
}

func attempt(ctx context.Context, limit time.Duration, again bool, try func(ctx context.Context, again bool) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return try(ctx, again)
}

// Pause waits before try n+1, longer each time and spread, so that processes
// which failed together do not come back together.
func Pause(ctx context.Context, n int) bool {
	d := lastWait
	if n < Tries { // beyond, the shift would overflow: who waits for a lock waits often
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

// Failure explains an error, and says when the outcome is unknown. That it was
// blocked stays known, for callers that can do something about it.
func Failure(doing string, err error, unknown bool) error {
	explained := Explain(doing, err)
	if unknown {
		explained = fmt.Errorf("%s: %w: %w", doing, job.ErrOutcomeUnknown, err)
	}
	if blocking(codeOf(err)) {
		return Fault{Err: explained, Unknown: unknown, Blocked: true}.AsError()
	}
	return explained
}

// faulted carries a fault through functions that return errors.
type faulted struct{ Fault }

func (f *faulted) Error() string { return f.Err.Error() }
func (f *faulted) Unwrap() error { return f.Err }

// AsError carries the fault on; faultOf finds it again.
func (f Fault) AsError() error { return &faulted{f} }

func FaultOf(err error) Fault {
	var f *faulted
	if errors.As(err, &f) {
		return f.Fault
	}
	return Fault{Err: err}
}
