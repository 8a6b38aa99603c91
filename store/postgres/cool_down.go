package postgres

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

var _ store.CoolDowns = (*Store)(nil)

// CoolDown tells that a handler of a queue was throttled.
func (s *Store) CoolDown(ctx context.Context, queue string, t job.Throttle) (store.CoolDownReply, error) {
	return s.settings.CoolDown(ctx, queue, t)
}

// ResetCoolDown ends the cool-down of a queue and sets its counter to zero.
func (s *Store) ResetCoolDown(ctx context.Context, queue string, op store.Operator) error {
	return s.settings.ResetCoolDown(ctx, queue, op)
}
