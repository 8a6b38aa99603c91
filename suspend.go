package pawl

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
)

// suspendedError is how a run was suspended. To middleware it is a snooze.
type suspendedError struct {
	snooze snoozeError
}

func (s *suspendedError) Error() string {
	return fmt.Sprintf("%v: it %s, and comes again in %v", ErrSuspended, s.snooze.reason, s.snooze.wait.Round(time.Millisecond))
}

func (s *suspendedError) Unwrap() []error { return []error{ErrSuspended, s.snooze} }

// suspend gives the job back: from now on the outcome of the run is fixed. The first
// suspension of a run counts.
func (i *Info) suspend(wait time.Duration, reason string) error {
	s := &suspendedError{snoozeError{max(wait, 0), reason}}
	if !i.says.suspended.CompareAndSwap(nil, s) {
		return i.says.suspended.Load()
	}
	i.task.Suspend(s)
	return s
}

// outcome is what a suspended run comes to, whatever the handler did after it.
func (s *suspendedError) outcome() job.Outcome {
	return job.Outcome{Kind: job.Snoozed, Delay: s.snooze.wait, Message: s.snooze.reason, Err: s}
}

// swallowed tells of a handler that went on although its job had been given back.
func (h *handler) swallowed(ctx context.Context, i *Info, what string) {
	h.engine.swallowed.Add(1)
	h.engine.cfg.Logger.WarnContext(ctx, "a handler went on after its job was given back; what it came to does not count",
		"job", i.ID, "kind", i.Kind, "run", i.Run, "came to", what)
}
