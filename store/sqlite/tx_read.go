package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
)

// Seen returns those of ids that the transaction sees as jobs.
func (w within) Seen(ctx context.Context, ids []job.ID) (seen []job.ID, err error) {
	err = w.run(ctx, func(t *transition) error {
		seen = nil
		for _, id := range ids {
			n, err := t.Query(seenText).Int(w.s.namespace).Blob(id[:]).Int(w.s.namespace).Blob(id[:]).One()
			if err != nil {
				return err
			}
			if n > 0 {
				seen = append(seen, id)
			}
		}
		return nil
	})
	return seen, err
}

// Two reads by the primary keys of the tables.
const seenText = `SELECT count(*) FROM (
	SELECT 1 FROM pawl_job WHERE namespace = ? AND id = ?
	UNION ALL
	SELECT 1 FROM pawl_job_archive WHERE namespace = ? AND id = ?)`
