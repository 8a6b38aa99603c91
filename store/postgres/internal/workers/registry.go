package workers

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// changeRegistry gives the registry a new version, in the commit that changes
// who shares totals: whoever reads the version and the workers in one snapshot
// knows that they belong together. Like the number of a worker, a version is
// made from the time, so that a promoted standby does not give one out again.
// The row is locked after the workers' rows.
//
//   - namespace_pkey finds the row.
const changeRegistry = `UPDATE pawl.namespace
	SET registry = greatest((extract(epoch FROM {now}) * 1000000)::bigint, registry + 1)
	WHERE namespace.id = $1`

// readWorkers lists those that have not left.
//
//   - worker_live and worker_lost give the workers, worker_pkey their rows, worker_beat_pkey their beats; job_held counts what
//     each one runs.
var readWorkers = `SELECT worker.id, worker.label, worker.host, worker.process, worker.machine, worker.start,
	worker.queues, worker.totals, worker.offer, worker.lost_after,
	worker.started, coalesce(b.at, worker.beat), worker.owner, worker.version,
	worker.lost IS NOT NULL,
	worker.split <> 0,
	(
		SELECT count(*)
		FROM pawl.job
		WHERE job.namespace = worker.namespace AND job.state = 3 AND job.worker = worker.id
	),
	{now},
	worker.slots,
	worker.remote
FROM (
	SELECT w.id
	FROM pawl.worker AS w
	WHERE w.namespace = $1 AND w.lost IS NULL AND w.id > 0 AND NOT w.gone
	UNION ALL
	SELECT w.id
	FROM pawl.worker AS w
	WHERE w.namespace = $1 AND NOT w.gone AND w.lost IS NOT NULL AND w.id > 0
) AS here
JOIN pawl.worker ON worker.namespace = $1 AND worker.id = here.id
LEFT JOIN LATERAL (` + beatOf("$1", "here.id") + `
) AS b ON true
ORDER BY worker.id`

// Registry lists the workers.
func (r *Room) Registry(ctx context.Context) ([]store.WorkerInfo, error) {
	var workers []store.WorkerInfo
	err := r.pg.Read(ctx, func() []*pg.Statement {
		workers = nil
		return []*pg.Statement{r.RegistryStep(&workers, new(time.Time))}
	})
	return workers, err
}

func (r *Room) RegistryStep(workers *[]store.WorkerInfo, now *time.Time) *pg.Statement {
	return &pg.Statement{Text: readWorkers, Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error {
		var w store.WorkerInfo
		var queues []pgtype.Text
		var offer, totals []byte
		var micros int64
		var slots []pgtype.Int4
		var started, beat pgtype.Timestamptz // which may be infinity
		err := scan(&w.ID, &w.Worker.Label, &w.Worker.Host, &w.Worker.Process, &w.Worker.Machine, &w.Worker.Start, &queues, &totals, &offer, &micros,
			&started, &beat, &w.Worker.Owner, &w.Worker.Version, &w.Lost, &w.Shares, &w.Running, now, &slots, &w.Worker.Remote)
		if err != nil {
			return err
		}
		w.Worker.LostAfter = time.Duration(micros) * time.Microsecond
		w.Started, w.Beat = started.Time.UTC(), beat.Time.UTC()
		for _, q := range queues {
			w.Worker.Queues = append(w.Worker.Queues, q.String)
		}
		w.Worker.Slots = slotsOf(slots)
		// What cannot be read costs that worker's part of it, not the list (P8).
		if json.Unmarshal(offer, &w.Worker.Offer) != nil {
			w.Worker.Offer, w.Unreadable = job.Offer{}, append(w.Unreadable, "offer")
		}
		if totals != nil && json.Unmarshal(totals, &w.Worker.Totals) != nil {
			w.Worker.Totals, w.Unreadable = nil, append(w.Unreadable, "totals")
		}
		*workers = append(*workers, w)
		return nil
	}}
}
