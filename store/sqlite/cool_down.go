package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

var _ store.CoolDowns = (*Store)(nil)

// CoolDown tells that a handler of a queue was throttled.
func (s *Store) CoolDown(ctx context.Context, queue string, throttle job.Throttle) (store.CoolDownReply, error) {
	if err := job.CheckName("queue", queue); err != nil {
		return store.CoolDownReply{}, err
	}
	return ask(ctx, s, 1, func(t *jobs.Transition) (store.CoolDownReply, error) {
		return settings.CoolDown(&t.Session, queue, throttle)
	})
}

// ResetCoolDown ends the cool-down of a queue and sets its counter to zero.
func (s *Store) ResetCoolDown(ctx context.Context, queue string, op store.Operator) error {
	if err := job.CheckName("queue", queue); err != nil {
		return err
	}
	return s.write(ctx, 1, func(t *jobs.Transition) error { return settings.ResetCoolDown(&t.Session, queue, op) })
}
