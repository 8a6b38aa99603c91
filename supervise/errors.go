package supervise

import "errors"

var (
	// ErrStarted is returned by a second Start: one Supervisor lives once.
	ErrStarted = errors.New("supervise: already started")

	// ErrStopped is returned by a Start that a Stop came before or cut short. It is also the
	// cause (context.Cause) of a service's context once the service has been asked to stop.
	ErrStopped = errors.New("supervise: stopped")

	// ErrGaveUp is in the error of Wait, and of a Start whose Once failed, when a service failed
	// and its policy allowed no further restart. The service's own last error is in the same chain.
	ErrGaveUp = errors.New("restart budget used up")

	// ErrStuck is in the error of Wait when a Stop ran out of time before every service had
	// ended. The message names the services that are still running.
	ErrStuck = errors.New("did not stop in time")

	// ErrNoSuchTick is returned by Wake when no tick of that name exists or it has already ended.
	ErrNoSuchTick = errors.New("supervise: no such tick")
)

// errGoexit is the failure of a function that left through runtime.Goexit: it neither returned
// nor panicked, so it must not pass for a success.
var errGoexit = errors.New("function called runtime.Goexit")
