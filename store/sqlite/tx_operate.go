package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

var _ store.OperatingTx = within{}

// Cancel ends jobs with the transaction, or asks running ones to stop.
func (w within) Cancel(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return w.operate(ctx, func(t *jobs.Transition) ([]store.Change, error) { return t.Cancel(ids, op) })
}

// Retry makes jobs ready with the transaction.
func (w within) Retry(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return w.operate(ctx, func(t *jobs.Transition) ([]store.Change, error) { return t.Retry(ids, op) })
}

// Delete removes jobs with the transaction, or asks running ones to cancel. Their
// log lines go in it too, however many: they cannot go before it.
func (w within) Delete(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return w.operate(ctx, func(t *jobs.Transition) ([]store.Change, error) { return t.Delete(ids, op) })
}

// operate holds the write lock already, so no job is held by anybody else.
func (w within) operate(ctx context.Context, verb func(*jobs.Transition) ([]store.Change, error)) (changes []store.Change, err error) {
	err = w.run(ctx, func(t *jobs.Transition) (err error) {
		changes, err = whole(t, func() ([]store.Change, error) { return verb(t) })
		return err
	})
	return changes, err
}
