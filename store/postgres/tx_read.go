package postgres

import (
	"context"

	"github.com/pawlwork/pawl/job"
)

// seenJobs reads both tables by their primary keys.
const seenJobs = `SELECT id FROM pawl.job
	WHERE namespace = $1 AND id = ANY($2::uuid[])
	UNION ALL
	SELECT id FROM pawl.job_archive
	WHERE namespace = $1 AND id = ANY($2::uuid[])`

// Seen returns those of ids that the transaction sees as jobs.
func (w *within) Seen(ctx context.Context, ids []job.ID) (seen []job.ID, err error) {
	if err := w.enter(ctx); err != nil {
		return nil, err
	}
	defer w.s.leave()
	err = w.in.run(ctx, &statement{text: seenJobs, args: []any{w.s.namespace, uuids(ids)}, each: func(scan scan) error {
		var id job.ID
		err := scan(&id)
		seen = append(seen, id)
		return err
	}})
	return seen, explain("read", w.foreign(err))
}
