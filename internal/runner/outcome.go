package runner

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
)

// judge turns what a handler returned into what the run came to, given why its
// context was cancelled (nil when it was not). The truth wins (P9): a success
// is a success however late, and what a handler says deliberately (Dead, Snooze)
// stands. Only a plain error may be the echo of the cancellation.
func judge(o job.Outcome, cause error, timeout time.Duration) job.Outcome {
	if o.Kind != job.Failed && o.Kind != job.StoreFailed || cause == nil {
		return o
	}
	switch {
	case errors.Is(cause, job.ErrCancelled):
		o.Kind = job.CancelSeen
	case errors.Is(cause, job.ErrStopping), errors.Is(cause, job.ErrLeaseLost):
		o.Kind = job.Released
	case errors.Is(cause, job.ErrDeadline):
		o.Kind = job.OutOfTime
		o.Message = job.ErrDeadline.Error() + ": " + o.Message
	case errors.Is(cause, job.ErrTimeout):
		o.Message = fmt.Sprintf("%v after %v: %s", job.ErrTimeout, timeout, o.Message)
	}
	return o
}

// panicked is the outcome of a handler that panicked (J11).
func panicked(value any, stack []byte) job.Outcome {
	message := fmt.Sprintf("panic: %v", value)
	return job.Outcome{Kind: job.Failed, Err: errors.New(message), Message: message, Stack: string(stack), Panicked: true}
}

// exited is the outcome of a handler that ended its goroutine, as FailNow of a
// test does: it did not return, so it did not succeed.
var exited = job.Outcome{Kind: job.Failed, Err: errExited, Message: errExited.Error()}

var errExited = errors.New("the handler ended its goroutine (runtime.Goexit)")
