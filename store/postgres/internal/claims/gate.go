package claims

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// moveToGates puts waiting jobs behind other gates, or in front of them. What is locked,
// or is elsewhere by now, is left out.
//
//   - job_pkey finds the rows.
const moveToGates = `WITH picked AS MATERIALIZED (
	SELECT job.ctid AS place, c.gate
	FROM (
		SELECT $1::int AS namespace, 2::smallint AS waiting, c.*
		FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS c (id, old, gate)
		OFFSET 0
	) AS c
	JOIN pawl.job ON job.namespace = ANY (ARRAY[c.namespace]) AND job.id = c.id
	WHERE job.state = c.waiting AND job.gate IS NOT DISTINCT FROM c.old
	ORDER BY job.id
	FOR UPDATE OF job SKIP LOCKED
)
UPDATE pawl.job
SET gate = picked.gate
FROM picked
WHERE job.ctid = picked.place
RETURNING job.queue, job.priority, job.due`

// moved are jobs on their way to other gates.
type moved struct {
	ids        [][16]byte
	old, gates []pgtype.Int8
}

func (m *moved) add(id [16]byte, old, gate int64) {
	m.ids = append(m.ids, id)
	m.old = append(m.old, pgtype.Int8{Int64: old, Valid: old != 0})
	m.gates = append(m.gates, pgtype.Int8{Int64: gate, Valid: gate != 0})
}

// move moves them, in a transaction of its own, tells claims, and says how many it
// moved. One that somebody has locked is passed like any other, and nobody stands
// before it: the sweep finds it (P8).
func (r *Room) move(ctx context.Context, m *moved) (n int, err error) {
	if m.ids == nil {
		return 0, nil
	}
	var told hints.Set
	err = r.pg.Retry(ctx, "claim", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Claim, pg.SharedLimits, &pg.Statement{
			Text: moveToGates, Args: []any{r.pg.Namespace, m.ids, m.old, m.gates}, Each: func(scan pg.Scan) error {
				var queue string
				var priority int
				var due time.Time
				err := scan(&queue, &priority, &due)
				told.Add(queue, priority, due)
				n++
				return err
			},
		})
	})
	if err == nil {
		r.hints.Tell(told)
	}
	return n, err
}

// gate moves the jobs that a look has met in front of their gates to behind them.
func (k *claiming) gate(ctx context.Context, found []candidate) error {
	var m moved
	for _, c := range found {
		if c.gate != 0 {
			m.add(c.ID, 0, c.gate)
		}
	}
	_, err := k.room.move(ctx, &m)
	return err
}
