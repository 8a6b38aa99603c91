package workers

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// markBegun notes that handlers have begun. A row that a handler's own
// transaction holds is passed over: its finish is on the way, and a heartbeat
// must not wait for a user's transaction. A lost worker marks nothing.
//
//   - job_pkey finds the runs, worker_pkey the worker.
const markBegun = `WITH own AS MATERIALIZED (
	SELECT job.ctid AS place
	FROM (
		SELECT $1::int AS namespace, 3::smallint AS running, r.*
		FROM unnest($3::uuid[], $4::bigint[]) AS r (id, run)
		OFFSET 0
	) AS r
	JOIN pawl.job ON job.namespace = ANY (ARRAY[r.namespace]) AND job.id = r.id
	WHERE job.run = r.run
		AND job.worker = $2
		AND job.state = r.running
		AND NOT job.begun
		AND EXISTS (SELECT FROM pawl.worker WHERE namespace = $1 AND id = $2 AND lost IS NULL)
	ORDER BY job.id
	FOR UPDATE OF job SKIP LOCKED
)
UPDATE pawl.job
SET begun = true, started = {now}
FROM own
WHERE job.ctid = own.place`

func (r *Room) BegunStep(w job.WorkerID, refs []store.RunRef) *pg.Statement {
	ids, runs := RefArrays(refs)
	return &pg.Statement{Text: markBegun, Args: []any{r.pg.Namespace, w, ids, runs}}
}

func RefArrays(refs []store.RunRef) (ids [][16]byte, runs []int64) {
	for _, r := range refs {
		ids, runs = append(ids, r.ID), append(runs, r.Run)
	}
	return ids, runs
}
