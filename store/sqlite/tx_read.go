package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

// Seen returns those of ids that the transaction sees as jobs.
func (w within) Seen(ctx context.Context, ids []job.ID) (found []job.ID, err error) {
	err = w.run(ctx, func(t *jobs.Transition) (err error) {
		found, err = jobs.Seen(&t.Snapshot, ids)
		return err
	})
	return found, err
}
