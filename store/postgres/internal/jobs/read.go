package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// readJobs finds jobs in both tables in one snapshot: a job that moves from one
// to the other meanwhile is seen once.
//
//   - job_pkey and job_archive_pkey find the rows.
var readJobs = "SELECT " + LiveColumns + `, e.n
FROM (` + wantedIDs + `) AS e
JOIN pawl.job ON job.namespace = e.namespace AND job.id = e.want
UNION ALL
SELECT ` + archivedColumns + `, e.n
FROM (` + wantedIDs + `) AS e
JOIN pawl.job_archive AS a ON a.namespace = e.namespace AND a.id = e.want`

// wantedIDs are givenIDs with their places.
const wantedIDs = "SELECT $1::int AS namespace, e.* FROM unnest($2::uuid[]) WITH ORDINALITY AS e (want, n) OFFSET 0"

// Get returns the jobs that exist, live or archived, in the order asked.
func (r *Room) Get(ctx context.Context, ids []job.ID) ([]job.Job, error) {
	if len(ids) == 0 {
		return nil, r.pg.Usable(ctx)
	}
	var found []numbered
	err := r.pg.Read(ctx, func() []*pg.Statement {
		found = nil
		return []*pg.Statement{r.getStep(ids, &found)}
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b numbered) int { return a.n - b.n })
	jobs := make([]job.Job, len(found))
	for i := range found {
		jobs[i] = found[i].Job
	}
	return jobs, nil
}

type numbered struct {
	job.Job
	n int
}

func (r *Room) getStep(ids []job.ID, found *[]numbered) *pg.Statement {
	var rows RowReader
	return &pg.Statement{Text: readJobs, Args: []any{r.pg.Namespace, uuids(ids)}, Raw: func(cols [][]byte) error {
		*found = append(*found, numbered{})
		f := &(*found)[len(*found)-1]
		if err := rows.Job(cols, &f.Job); err != nil {
			return err
		}
		f.n = int(rows.Int8())
		return rows.Err
	}}
}

// aheadOf counts for each waiting job the ready jobs of its queue that a claim
// meets first, as far as the cap ($3).
//
//   - job_pkey finds the jobs, and job_ready the others: a stretch of it for each
//     priority.
const aheadOf = `SELECT e.n, ahead.jobs
FROM (SELECT 2::smallint AS waiting, e.* FROM (` + wantedIDs + `) AS e OFFSET 0) AS e
JOIN pawl.job AS j ON j.namespace = e.namespace AND j.id = e.want AND j.state = e.waiting
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
//   - job_pkey finds the jobs, job_held the runs.
const runsOfQueues = `SELECT w.label, w.totals, w.lost IS NOT NULL, held.queue, held.runs
FROM pawl.worker AS w
CROSS JOIN LATERAL (
	SELECT j.queue, count(*) AS runs
	FROM pawl.job AS j
	WHERE j.namespace = $1 AND j.state = 3 AND j.worker = w.id AND j.queue = ANY (ARRAY(
		SELECT DISTINCT me.queue
		FROM (` + givenIDs + `) AS e
		JOIN pawl.job AS me ON me.namespace = e.namespace AND me.id = e.id
	))
	GROUP BY j.queue
) AS held
WHERE w.namespace = $1 AND w.totals IS NOT NULL AND NOT w.drained
ORDER BY w.id`

// whoRuns tells who runs each job.
//
//   - job_pkey and worker_pkey serve the looks.
const whoRuns = `SELECT e.n, coalesce(w.label, '')
FROM (` + wantedIDs + `) AS e
JOIN pawl.job AS j ON j.namespace = e.namespace AND j.id = e.want
LEFT JOIN pawl.worker AS w ON w.namespace = e.namespace AND w.id = j.worker`

// Situations gathers why jobs are not running.
func (r *Room) Situations(ctx context.Context, ids []job.ID) ([]job.Situation, error) {
	if len(ids) == 0 {
		return nil, r.pg.Usable(ctx)
	}
	// What is known of each job, by its place in ids.
	type known struct {
		label string
		ahead int
	}
	var found []numbered
	var workers []store.WorkerInfo
	var pauses []store.Pause
	var runs map[string][]store.QueueRuns
	var now time.Time
	var of map[int]*known
	most := store.AheadCap(len(ids))
	err := r.pg.Read(ctx, func() []*pg.Statement {
		found, workers, pauses, runs, of = nil, nil, nil, map[string][]store.QueueRuns{}, make(map[int]*known, len(ids))
		for n := range ids {
			of[n+1] = &known{}
		}
		args := []any{r.pg.Namespace, uuids(ids)}
		return []*pg.Statement{
			{Text: "SELECT {now}", Each: func(scan pg.Scan) error { return scan(&now) }},
			r.getStep(ids, &found),
			{Text: whoRuns, Args: args, Each: func(scan pg.Scan) error {
				var n int
				var k known
				err := scan(&n, &k.label)
				of[n] = &k
				return err
			}},
			r.workers.RegistryStep(&workers, new(time.Time)),
			r.settings.PausesStep(&pauses),
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
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b numbered) int { return a.n - b.n })
	list := make([]job.Situation, len(found))
	for i := range found {
		sit, k := &list[i], of[found[i].n]
		sit.Job, sit.Now = found[i].Job, now.UTC()
		if sit.Job.State.Final() {
			continue
		}
		sit.Pause, sit.Label = store.PauseOf(pauses, sit.Job.Queue, sit.Job.Kind), k.label
		sit.Ahead, sit.AheadCapped = min(k.ahead, most), k.ahead > most
		store.Situate(sit, workers, runs[sit.Job.Queue])
	}
	return list, nil
}

// jobLines are a job's lines; those of a job that is gone wait for the purge.
//
//   - job_log_pkey gives them in order; job_pkey and job_archive_pkey find the job.
const jobLines = `SELECT time, run, level, text
FROM pawl.job_log
WHERE namespace = $1 AND job = $2 AND (
	EXISTS (SELECT FROM pawl.job AS j WHERE j.namespace = $1 AND j.id = $2)
	OR EXISTS (SELECT FROM pawl.job_archive AS a WHERE a.namespace = $1 AND a.id = $2)
)
ORDER BY line
OFFSET $3
LIMIT $4`

// Logs returns a job's lines, the oldest first, skipping the first n.
func (r *Room) Logs(ctx context.Context, id job.ID, skip, limit int) ([]job.LogLine, error) {
	var lines []job.LogLine
	err := r.pg.Read(ctx, func() []*pg.Statement {
		lines = nil
		return []*pg.Statement{{
			Text: jobLines,
			Args: []any{r.pg.Namespace, id, skip, limit}, Each: func(scan pg.Scan) error {
				var l job.LogLine
				var text []byte
				err := scan(&l.Time, &l.Run, &l.Level, &text)
				l.Time, l.Text = l.Time.UTC(), string(text)
				lines = append(lines, l)
				return err
			},
		}}
	})
	return lines, err
}

// Now is the store's clock.
func (r *Room) Now(ctx context.Context) (time.Time, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer r.pg.Leave()
	return r.pg.Now(ctx, r.pg.Work)
}

// seenJobs finds jobs in both tables.
//
//   - job_pkey and job_archive_pkey find the rows.
const seenJobs = `SELECT id
FROM pawl.job
WHERE namespace = $1 AND id = ANY($2::uuid[])
UNION ALL
SELECT id
FROM pawl.job_archive
WHERE namespace = $1 AND id = ANY($2::uuid[])`

// SeenIn returns those of ids that a user's transaction sees as jobs.
func (r *Room) SeenIn(ctx context.Context, in pg.Session, ids []job.ID) (seen []job.ID, err error) {
	err = in.Run(ctx, &pg.Statement{Text: seenJobs, Args: []any{r.pg.Namespace, uuids(ids)}, Each: func(scan pg.Scan) error {
		var id job.ID
		err := scan(&id)
		seen = append(seen, id)
		return err
	}})
	return seen, err
}
