package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/schedules"
)

var _ store.Schedules = (*Store)(nil)

// ScheduleStates reads how far every schedule has come.
func (s *Store) ScheduleStates(ctx context.Context) (store.ScheduleStates, error) {
	return view(ctx, s, schedules.States)
}

// Fire moves schedules on and accepts the jobs of their due times.
func (s *Store) Fire(ctx context.Context, revision int64, list []store.Firing) ([]store.Fired, error) {
	if err := store.CheckFirings(list); err != nil || len(list) == 0 {
		return nil, err
	}
	rows := len(list)
	for i := range list {
		rows += len(list[i].Jobs)
	}
	fired, err := ask(ctx, s, rows, func(t *jobs.Transition) ([]store.Fired, error) { return schedules.Fire(t, revision, list) })
	for i := range list {
		job.SettleHandOvers(list[i].Jobs, unknown(err))
	}
	return fired, err
}

// TriggerSchedule accepts a job beside the due times, with its audit entry.
func (s *Store) TriggerSchedule(ctx context.Context, name string, draft job.Draft, op store.Operator) (job.Receipt, error) {
	return ask(ctx, s, 1, func(t *jobs.Transition) (job.Receipt, error) { return schedules.Trigger(t, name, draft, op) })
}

// ForgetSchedule removes a state.
func (s *Store) ForgetSchedule(ctx context.Context, name string) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return schedules.Forget(&t.Session, name) })
}
