package claims

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// moveToGates puts waiting jobs behind gates. What is locked, or has one by now, is
// left out.
//
//   - job_pkey finds the rows.
const moveToGates = `WITH picked AS MATERIALIZED (
	SELECT job.ctid AS place, c.gate
	FROM (
		SELECT $1::int AS namespace, 2::smallint AS waiting, c.*
		FROM unnest($2::uuid[], $3::bigint[]) AS c (id, gate)
		OFFSET 0
	) AS c
	JOIN pawl.job ON job.namespace = c.namespace AND job.id = c.id
	WHERE job.state = c.waiting AND job.gate IS NULL
	ORDER BY job.id
	FOR UPDATE OF job SKIP LOCKED
)
UPDATE pawl.job
SET gate = picked.gate
FROM picked
WHERE job.ctid = picked.place
RETURNING job.queue, job.priority, job.due`

// gate moves the jobs that a look has met in front of their gates to behind them. One
// that somebody has locked is passed like any other, and nobody stands before it: the
// sweep finds it (P8).
func (k *claiming) gate(ctx context.Context, found []candidate) error {
	var ids [][16]byte
	var gates []int64
	for _, c := range found {
		if c.gate != 0 {
			ids, gates = append(ids, c.ID), append(gates, c.gate)
		}
	}
	if ids == nil {
		return nil
	}
	var told hints.Set
	err := k.room.pg.Retry(ctx, "claim", pg.Always, func(ctx context.Context, _ bool) error {
		return k.room.pg.Send(ctx, k.room.pg.Work, pg.SharedLimits, &pg.Statement{
			Text: moveToGates, Args: []any{k.room.pg.Namespace, ids, gates}, Each: func(scan pg.Scan) error {
				var queue string
				var priority int
				var due time.Time
				err := scan(&queue, &priority, &due)
				told.Add(queue, priority, due)
				return err
			},
		})
	})
	if err == nil {
		k.room.hints.Tell(told)
	}
	return err
}
