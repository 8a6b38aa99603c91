package postgres

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

var _ store.Schedules = (*Store)(nil)

// ScheduleStates reads how far every schedule has come.
func (s *Store) ScheduleStates(ctx context.Context) (store.ScheduleStates, error) {
	return s.schedules.States(ctx)
}

// Fire moves schedules on and accepts the jobs of their due times.
func (s *Store) Fire(ctx context.Context, revision int64, list []store.Firing) ([]store.Fired, error) {
	if err := store.CheckFirings(list); err != nil || len(list) == 0 {
		return nil, err
	}
	return s.schedules.Fire(ctx, revision, list)
}

// TriggerSchedule accepts a job beside the due times, with its audit entry.
func (s *Store) TriggerSchedule(ctx context.Context, name string, draft job.Draft, op store.Operator) (job.Receipt, error) {
	return s.schedules.Trigger(ctx, name, draft, op)
}

// ForgetSchedule removes a state.
func (s *Store) ForgetSchedule(ctx context.Context, name string) error {
	return s.schedules.Forget(ctx, name)
}
