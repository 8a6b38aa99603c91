package job

import (
	"errors"
	"fmt"
)

// The meanings an operation on jobs can fail with. Callers test with errors.Is.
var (
	// ErrNotFound: no job with that id is live or archived, or there is no such schedule or
	// operation (NotFound).
	ErrNotFound = errors.New("pawl: no such job")
	// ErrLeaseLost: the run no longer owns its job; whatever it writes changes nothing.
	ErrLeaseLost = errors.New("pawl: lease lost")
	// ErrWorkerLost: the worker was declared lost and must register anew.
	ErrWorkerLost = errors.New("pawl: worker was declared lost")
	// ErrOutcomeUnknown: the commit's answer was lost; it may or may not have happened.
	// Sending again under the same id is safe.
	ErrOutcomeUnknown = errors.New("pawl: outcome unknown, send again with the same id")
	// ErrInvalid: an input is out of bounds; the text names field, value and bound.
	ErrInvalid = errors.New("pawl: invalid")
	// ErrTimeout is the cause of a handler's context when its attempt took too long.
	ErrTimeout = errors.New("pawl: attempt timed out")
	// ErrDeadline is the cause of a handler's context when its job's deadline passed.
	ErrDeadline = errors.New("pawl: job deadline passed")
	// ErrCancelled is the cause of a handler's context when its job was asked to cancel.
	ErrCancelled = errors.New("pawl: job cancelled")
	// ErrStopping is the cause of a handler's context when the grace period of a stop ended.
	ErrStopping = errors.New("pawl: worker is stopping")
)

// NotFound says that there is no such thing other than a job, and is ErrNotFound.
func NotFound(what string, name any) error { return &missing{what, name} }

type missing struct {
	what string
	name any
}

func (m *missing) Error() string { return fmt.Sprintf("pawl: no such %s: %v", m.what, m.name) }
func (m *missing) Unwrap() error { return ErrNotFound }
