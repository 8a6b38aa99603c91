package supervise

import "context"

// Leadership answers a tick's question "is it mine now?". It saves work; it must never be what
// makes the work correct. Between the answer and the end of the run the answer may change, so
// two processes can run the same tick at the same time, and the tick must be harmless then.
//
// Both methods are called from the tick's goroutine before each cycle, Changed first, so that a
// change between the two calls is not missed.
type Leadership interface {
	// Mine reports whether this process should run the named service now. False skips the cycle
	// quietly. An error skips it too, and is logged and counted as an error of the service.
	Mine(ctx context.Context, service string) (bool, error)

	// Changed returns a channel that is closed when the answer of Mine may have become
	// another one. A tick that was not ours asks again then, instead of at its next interval.
	// A nil channel is fine: the tick then asks once an interval.
	Changed(service string) <-chan struct{}
}
