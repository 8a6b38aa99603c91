package lists

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// totals counts the next jobs ($3) behind an id ($2), live and archived together: a job
// that moves from one to the other is counted once. The first row says which was the
// last.
//
//   - job_pkey and job_archive_pkey.
const totals = `WITH part AS MATERIALIZED (
	(
		SELECT id, queue, state
		FROM pawl.job
		WHERE namespace = $1 AND id > $2
		ORDER BY id
		LIMIT $3
	)
	UNION ALL
	(
		SELECT id, queue, state
		FROM pawl.job_archive
		WHERE namespace = $1 AND id > $2
		ORDER BY id
		LIMIT $3
	)
	ORDER BY id
	LIMIT $3
)
SELECT NULL::text, 0::smallint, (SELECT count(*) FROM part), uuid_send((SELECT id FROM part ORDER BY id DESC LIMIT 1))
UNION ALL
SELECT queue, state, count(*), NULL::bytea
FROM part
GROUP BY queue, state`

// Totals counts the next step jobs behind an id by queue and state. It answers the last
// of them, nil when there are none behind. Its caller has entered the store.
func (r *Room) Totals(ctx context.Context, after []byte, step int) (counts []store.QueueCount, last []byte, jobs int64, err error) {
	var id [16]byte
	copy(id[:], after)
	err = r.pg.Retry(ctx, "count", pg.Reading, func(ctx context.Context, _ bool) error {
		counts, last = nil, nil
		return r.pg.Send(ctx, r.pg.Reading, pg.UpkeepLimits, &pg.Statement{Text: totals, Args: []any{r.pg.Namespace, id, step}, Each: func(scan pg.Scan) error {
			var queue pgtype.Text
			var state int16
			var n int64
			var at []byte
			err := scan(&queue, &state, &n, &at)
			if !queue.Valid {
				jobs, last = n, at
			} else {
				counts = append(counts, store.QueueCount{Queue: queue.String, State: job.State(state), Counted: store.Counted{Jobs: int(n)}})
			}
			return err
		}})
	})
	if jobs < int64(step) {
		last = nil
	}
	return counts, last, jobs, err
}
