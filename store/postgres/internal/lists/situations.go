package lists

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// aheadOf counts for each waiting job the ready jobs of its queue that a claim
// meets first, as far as the cap ($3).
//
//   - job_pkey finds the jobs, and job_ready the others: a stretch of it for each
//     priority.
const aheadOf = `SELECT e.n, ahead.jobs
FROM (SELECT 2::smallint AS waiting, e.* FROM (` + jobs.WantedIDs + `) AS e OFFSET 0) AS e
JOIN pawl.job AS j ON j.namespace = ANY (ARRAY[e.namespace]) AND j.id = e.want AND j.state = e.waiting
CROSS JOIN LATERAL (
	SELECT count(*) AS jobs
	FROM (
		SELECT
		FROM generate_series(1, j.priority) AS level
		CROSS JOIN LATERAL (
			SELECT
			FROM pawl.job AS a
			WHERE a.namespace = j.namespace
				AND a.queue = j.queue
				AND a.state = 2
				AND a.gate IS NULL
				AND a.priority = level::smallint
				AND (a.due, a.id) < (CASE WHEN level < j.priority THEN 'infinity' ELSE j.due END, j.id)
				AND a.due <= {now}
			ORDER BY a.due, a.id
			LIMIT $3
		) AS before
		LIMIT $3
	) AS counted
) AS ahead`

// runsOfQueues counts what the workers with totals run of the jobs' queues.
//
//   - worker_live and worker_undrained give the workers; job_pkey finds the jobs, job_held the runs.
const runsOfQueues = `SELECT w.label, w.totals, w.lost IS NOT NULL, held.queue, held.runs
FROM (
	SELECT id, label, totals, lost
	FROM pawl.worker
	WHERE namespace = $1 AND lost IS NULL AND id > 0 AND totals IS NOT NULL
	UNION ALL
	SELECT id, label, totals, lost
	FROM pawl.worker
	WHERE namespace = $1 AND lost IS NOT NULL AND NOT drained AND totals IS NOT NULL
) AS w
CROSS JOIN LATERAL (
	SELECT j.queue, count(*) AS runs
	FROM pawl.job AS j
	WHERE j.namespace = $1 AND j.state = 3 AND j.worker = w.id AND j.queue = ANY (ARRAY(
		SELECT DISTINCT me.queue
		FROM (` + jobs.GivenIDs + `) AS e
		JOIN pawl.job AS me ON me.namespace = ANY (ARRAY[e.namespace]) AND me.id = e.id
	))
	GROUP BY j.queue
) AS held
ORDER BY w.id`

// whoRuns tells who runs each job.
//
//   - job_pkey and worker_pkey serve the looks.
const whoRuns = `SELECT e.n, coalesce(w.label, '')
FROM (` + jobs.WantedIDs + `) AS e
JOIN pawl.job AS j ON j.namespace = ANY (ARRAY[e.namespace]) AND j.id = e.want
LEFT JOIN pawl.worker AS w ON w.namespace = e.namespace AND w.id = j.worker`

// usesOfGates tells how the gates of waiting jobs stand.
//
//   - job_pkey and gate_pkey; job_gate_held, as far as 1,000.
const usesOfGates = `SELECT e.n, (
	SELECT count(*)
	FROM (
		SELECT
		FROM pawl.job AS r
		WHERE r.namespace = j.namespace AND r.gate BETWEEN j.gate AND j.gate AND r.state = 3 AND r.gate IS NOT NULL
		ORDER BY r.gate
		LIMIT 1000
	) AS running
), g.level, g.filled, h.id, h.state, h.due
FROM (SELECT 2::smallint AS waiting, e.* FROM (` + jobs.WantedIDs + `) AS e OFFSET 0) AS e
JOIN pawl.job AS j ON j.namespace = ANY (ARRAY[e.namespace]) AND j.id = e.want AND j.state = e.waiting
LEFT JOIN pawl.gate AS g ON g.namespace = ANY (ARRAY[j.namespace]) AND g.gate = j.gate
LEFT JOIN LATERAL (
	SELECT id, state, due
	FROM pawl.job
	WHERE namespace = g.namespace AND id = g.head
	OFFSET 0
) AS h ON true
WHERE j.gate IS NOT NULL`

func readGateUse(scan pg.Scan) (n int, use job.GateUse, err error) {
	var level pgtype.Float8
	var filled pgtype.Int8
	var head pgtype.UUID
	var state pgtype.Int2
	var due pgtype.Timestamptz
	err = scan(&n, &use.Running, &level, &filled, &head, &state, &due)
	use.Known, use.Tokens = level.Valid, job.GateTokens{Level: level.Float64, At: filled.Int64}
	switch job.State(state.Int16) {
	case job.Waiting:
		use.Head, use.HeadDue = head.Bytes, due.Time
	case job.Suspended:
		use.Head = head.Bytes
	}
	return n, use, err
}

// Situations gathers why jobs are not running.
func (r *Room) Situations(ctx context.Context, ids []job.ID) ([]job.Situation, error) {
	if len(ids) == 0 {
		return nil, r.pg.Usable(ctx)
	}
	// What is known of each job, by its place in ids.
	type known struct {
		label string
		ahead int
		gate  job.GateUse
	}
	var found []jobs.Numbered
	var workers []store.WorkerInfo
	var pauses []store.Pause
	var cooling []job.CoolDown
	var runs map[string][]store.QueueRuns
	var now time.Time
	var of map[int]*known
	most := store.AheadCap(len(ids))
	err := r.pg.Browse(ctx, func() []*pg.Statement {
		found, workers, pauses, cooling, runs, of = nil, nil, nil, nil, map[string][]store.QueueRuns{}, make(map[int]*known, len(ids))
		for n := range ids {
			of[n+1] = &known{}
		}
		args := []any{r.pg.Namespace, jobs.UUIDs(ids)}
		return []*pg.Statement{
			{Text: "SELECT {now}", Each: func(scan pg.Scan) error { return scan(&now) }},
			r.jobs.GetStep(ids, &found),
			{Text: whoRuns, Args: args, Each: func(scan pg.Scan) error {
				var n int
				var k known
				err := scan(&n, &k.label)
				of[n] = &k
				return err
			}},
			r.workers.RegistryStep(&workers, new(time.Time)),
			r.settings.PausesStep(&pauses),
			r.settings.CoolDownsStep(&cooling),
			{Text: runsOfQueues, Args: args, Each: func(scan pg.Scan) error {
				var q store.QueueRuns
				var queue string
				err := scan(&q.Label, &q.Totals, &q.Lost, &queue, &q.Runs)
				runs[queue] = append(runs[queue], q)
				return err
			}},
			{Text: aheadOf, Args: append(args, most+1), Each: func(scan pg.Scan) error {
				var n, jobs int
				err := scan(&n, &jobs)
				of[n].ahead = jobs
				return err
			}},
			{Text: usesOfGates, Args: args, Each: func(scan pg.Scan) error {
				n, use, err := readGateUse(scan)
				of[n].gate = use
				return err
			}},
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b jobs.Numbered) int { return a.N - b.N })
	list := make([]job.Situation, len(found))
	for i := range found {
		sit, k := &list[i], of[found[i].N]
		sit.Job, sit.Now = found[i].Job, now.UTC()
		if sit.Job.State.Final() {
			continue
		}
		sit.Pause, sit.Label = store.PauseOf(pauses, sit.Job.Queue, sit.Job.Kind), k.label
		sit.CoolDown = store.CoolDownOf(cooling, sit.Job.Queue)
		sit.Ahead, sit.AheadCapped, sit.Gate = min(k.ahead, most), k.ahead > most, k.gate
		store.Situate(sit, workers, runs[sit.Job.Queue])
	}
	return list, nil
}
