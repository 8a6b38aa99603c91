package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
)

// Seen returns those of ids that the transaction sees as jobs.
func (w within) Seen(ctx context.Context, ids []job.ID) (found []job.ID, err error) {
	err = w.run(ctx, func(t *transition) (err error) {
		found, err = seenJobs(&t.Snapshot, ids)
		return err
	})
	return found, err
}
