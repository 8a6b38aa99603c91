package store

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
)

// CoolDowns is an optional interface of a store whose queues cool down: where a claim
// looks at pause it looks at them, and ClaimReply.Cooling says so.
type CoolDowns interface {
	// CoolDown tells that a handler of a queue was throttled. Which cool-down that
	// makes, job.CoolDown.Throttled decides, under the lock of the queue's row: of many
	// at once one begins it. Repeating the call after a lost answer changes nothing
	// while it runs. It costs no job anything: the run that was throttled is ended by
	// Finish.
	CoolDown(ctx context.Context, queue string, t job.Throttle) (CoolDownReply, error)
	// ResetCoolDown ends the cool-down of a queue and sets its counter to zero. Its
	// audit entry commits with it.
	ResetCoolDown(ctx context.Context, queue string, op Operator) error
}

// CoolDownReply is the cool-down that is running after a throttle.
type CoolDownReply struct {
	job.CoolDown
	Left  time.Duration // by the store's clock
	Began bool          // with this call
}
