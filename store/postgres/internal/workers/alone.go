package workers

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// lockAlone makes those who ask at once go one after the other. What the first
// has written is seen by the second only in a later statement.
const lockAlone = `INSERT INTO pawl.alone (namespace, job, run)
VALUES ($1, $2, 0)
ON CONFLICT (namespace) DO UPDATE SET namespace = excluded.namespace`

// takeAlone gives the place to a run that its worker owns, unless it belongs to
// another one that goes on.
//
//   - alone_pkey finds the place, job_pkey both runs.
const takeAlone = `UPDATE pawl.alone AS a
SET job = $3, run = $4
FROM (SELECT $1::int AS namespace, 3::smallint AS running OFFSET 0) AS e
WHERE a.namespace = $1
	AND (
		SELECT 1
		FROM pawl.job AS j
		WHERE j.namespace = e.namespace
			AND j.id = $3
			AND j.run = $4
			AND j.worker = $2
			AND j.state = e.running
	) IS NOT NULL
	AND (
		SELECT 1
		FROM pawl.job AS o
		WHERE o.namespace = e.namespace
			AND o.id = a.job
			AND o.run = a.run
			AND o.state = e.running
			AND o.id <> $3
	) IS NULL`

// Alone asks whether a run may be the one for which a worker empties itself.
func (r *Room) Alone(ctx context.Context, w job.WorkerID, run store.RunRef) (bool, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return false, err
	}
	defer r.pg.Leave()
	take := &pg.Statement{Text: takeAlone, Args: []any{r.pg.Namespace, w, run.ID, run.Run}}
	err := r.pg.Retry(ctx, "ask to run alone", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Reserved, pg.UpkeepLimits, &pg.Statement{Text: lockAlone, Args: []any{r.pg.Namespace, run.ID}}, take)
	})
	return take.Hits > 0, err
}
