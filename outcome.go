package pawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

type snoozeError struct{ wait time.Duration }

func (s snoozeError) Error() string { return fmt.Sprintf("pawl: snooze for %v", s.wait) }

// Snooze is returned by a handler to run again after a time. No attempt is burned.
func Snooze(wait time.Duration) error { return snoozeError{max(wait, 0)} }

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

// outcome reads what a handler returned.
func outcome(err error) job.Outcome {
	if err == nil {
		return job.Outcome{Kind: job.Succeeded}
	}
	var snooze snoozeError
	if errors.As(err, &snooze) {
		return job.Outcome{Kind: job.PutOff, Delay: snooze.wait}
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
// outside a handler.
func IdempotencyKey(ctx context.Context) string {
	if i, ok := ctx.Value(infoKey{}).(*Info); ok {
		return i.ID.String()
	}
	return ""
}
