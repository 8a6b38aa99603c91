package pawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

type snoozeError struct {
	wait   time.Duration
	reason string
}

func (s snoozeError) Error() string {
	if s.reason == "" {
		return fmt.Sprintf("pawl: snooze for %v", s.wait)
	}
	return fmt.Sprintf("pawl: snooze for %v: %s", s.wait, s.reason)
}

// Snooze is returned by a handler to run again after a time. No attempt is burned.
func Snooze(wait time.Duration) error { return SnoozeFor(wait, "") }

// SnoozeFor is Snooze with a reason, which is kept with the job while it waits:
// Engine.Why says it.
func SnoozeFor(wait time.Duration, reason string) error { return snoozeError{max(wait, 0), reason} }

// IsSnooze reports whether an error asks to run the job again later without
// burning an attempt: for middleware that counts or logs failures.
func IsSnooze(err error) bool {
	_, is := errors.AsType[snoozeError](err)
	return is
}

type throttledError struct {
	wait  time.Duration
	scope string
}

func (t throttledError) Error() string {
	text := "pawl: throttled"
	if t.scope != "" {
		text += " by " + t.scope
	}
	if t.wait > 0 {
		text += fmt.Sprintf(" for %v", t.wait)
	}
	return text
}

// Throttled is returned by a handler whose service refuses more for now: the whole
// queue cools down, in every process, and the job runs again after that. No attempt is
// burned.
//
// wait is how long the service asks for (Retry-After), 0 when it does not say. The queue
// cools down for so long at least, 1 s to 1 h; if it is throttled again after that,
// longer each time by its backoff (QueueSettings.Backoff: 1 s, 2 s, 4 s; where that is
// off, for wait, else a minute), until it has gone two minutes without. Handlers that
// are throttled together count once. A job that is throttled more than 100 times in a
// row burns an attempt.
//
// What an error around it says is kept as the reason:
//
//	fmt.Errorf("github: %s: %w", resp.Status, pawl.Throttled(30*time.Second))
func Throttled(wait time.Duration, opts ...ThrottleOption) error {
	t := throttledError{wait: max(wait, 0)}
	for _, o := range opts {
		t.scope = o.scope
	}
	return t
}

// ThrottleOption changes what Throttled cools down.
type ThrottleOption struct{ scope string }

// Scope names the limit that throttled the handler. It is emptied for the time, so that
// whoever acquires from it waits; the queue goes on with its other jobs, and only this
// one runs again later [after a minute, where Throttled says no time].
func Scope(limit string) ThrottleOption { return ThrottleOption{limit} }

// IsThrottled reports whether an error cools down a queue or a limit, and runs its job
// again without burning an attempt.
func IsThrottled(err error) bool {
	_, is := errors.AsType[throttledError](err)
	return is
}

type retryInError struct {
	wait time.Duration
	err  error
}

func (r retryInError) Error() string { return r.err.Error() }
func (r retryInError) Unwrap() error { return r.err }

// RetryIn is returned by a handler that failed and knows when to try again: it
// burns an attempt, as the error itself would, and waits for this time instead of
// the backoff's. After the last attempt the job is dead all the same.
func RetryIn(wait time.Duration, err error) error {
	if err == nil {
		err = errors.New("no reason given")
	}
	return retryInError{max(wait, 0), err}
}

// IsRetryIn reports whether an error is a failure that chose the time of the
// next attempt.
func IsRetryIn(err error) bool {
	_, is := errors.AsType[retryInError](err)
	return is
}

type deadError struct{ err error }

func (d deadError) Error() string { return d.err.Error() }
func (d deadError) Unwrap() error { return d.err }

// Dead is returned by a handler when trying again is pointless: the job ends as
// dead at once, however many attempts are left.
func Dead(err error) error {
	if err == nil {
		err = errors.New("no reason given")
	}
	return deadError{err}
}

// IsDead reports whether an error ends its job as dead at once.
func IsDead(err error) bool {
	_, is := errors.AsType[deadError](err)
	return is
}

// PanicError is a handler's panic as middleware and Hooks.Error see it. Wherever
// they pass it, or if they do not, the run has failed.
//
// It does not unwrap to a value that is an error: to panic with Snooze or Dead is
// to panic, not to say so.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine, at the panic
}

func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// outcome reads the error that a handler returned.
func outcome(err error) job.Outcome {
	o := judged(err)
	o.Err = err
	if p, is := errors.AsType[*PanicError](err); is {
		o.Stack = string(p.Stack)
	}
	return o
}

// judged is what an error means.
func judged(err error) job.Outcome {
	var snooze snoozeError
	if errors.As(err, &snooze) {
		return job.Outcome{Kind: job.Snoozed, Delay: snooze.wait, Message: snooze.reason}
	}
	var throttled throttledError
	if errors.As(err, &throttled) {
		o := job.Outcome{Kind: job.Throttled, Delay: throttled.wait}
		if throttled.scope != "" {
			o.Scope = &throttled.scope
		}
		o.Message = strings.TrimSuffix(strings.TrimSuffix(err.Error(), throttled.Error()), ": ")
		return o
	}
	var dead deadError
	if errors.As(err, &dead) {
		return job.Outcome{Kind: job.GaveUp, Message: err.Error()}
	}
	var undecoded undecodedError
	if errors.As(err, &undecoded) {
		return job.Outcome{Kind: job.Undecoded, Message: err.Error()}
	}
	if storeFault(err) {
		return job.Outcome{Kind: job.StoreFailed, Message: err.Error()}
	}
	var retry retryInError
	if errors.As(err, &retry) {
		return job.Outcome{Kind: job.Failed, Message: err.Error(), Delay: retry.wait, Timed: true}
	}
	return job.Outcome{Kind: job.Failed, Message: err.Error()}
}

// storeFault reports whether a handler failed because the store did. That is not
// the job's fault, and for a while burns no attempt (job.MaxStoreFailures).
func storeFault(err error) bool {
	for _, fault := range []error{store.ErrUnavailable, store.ErrFull, store.ErrBusy, job.ErrOutcomeUnknown} {
		if errors.Is(err, fault) {
			return true
		}
	}
	return false
}

type undecodedError struct {
	kind    string
	version int
	err     error
}

func (u undecodedError) Error() string {
	return fmt.Sprintf("cannot read the arguments of %s (version %d): %v", u.kind, u.version, u.err)
}
func (u undecodedError) Unwrap() error { return u.err }

// IdempotencyKey is the same for every attempt of a job. Hand it to services
// outside that take one, because a handler may run more than once. It is empty
// outside a handler, and in one of HandleBatch, where it is each job's ID.
func IdempotencyKey(ctx context.Context) string {
	if i, ok := ctx.Value(infoKey{}).(*Info); ok {
		return i.ID.String()
	}
	return ""
}
