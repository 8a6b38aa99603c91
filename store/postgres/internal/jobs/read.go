package jobs

import (
	"context"
	"fmt"
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

// maxAhead caps the count of jobs that come first.
const maxAhead = 10_000

// aheadOf counts the ready jobs of the queue that a claim meets first, as far as
// the cap.
//
//   - job_pkey finds the job, and job_ready the others: a stretch of it for each
//     priority.
const aheadOf = `SELECT count(*)
FROM (
	SELECT
	FROM pawl.job AS j
	CROSS JOIN LATERAL (
		SELECT
		FROM pawl.job AS a
		WHERE a.namespace = $1
			AND a.queue = j.queue
			AND a.state = 2
			AND a.priority < j.priority
			AND a.due <= {now}
		UNION ALL
		SELECT
		FROM pawl.job AS a
		WHERE a.namespace = $1
			AND a.queue = j.queue
			AND a.state = 2
			AND a.priority = j.priority
			AND (a.due, a.id) < (j.due, j.id)
			AND a.due <= {now}
	) AS ahead
	WHERE j.namespace = $1 AND j.id = $2 AND j.state = 2
	LIMIT 10001
) AS counted`

// runsOfQueue counts what the workers with totals run of a job's queue.
//
//   - job_pkey finds the job, job_held the runs.
const runsOfQueue = `SELECT w.label, w.totals, w.lost IS NOT NULL, held.runs
FROM pawl.job AS me
JOIN pawl.worker AS w ON w.namespace = $1 AND w.totals IS NOT NULL AND NOT w.drained
CROSS JOIN LATERAL (
	SELECT count(*) AS runs
	FROM pawl.job AS j
	WHERE j.namespace = $1 AND j.state = 3 AND j.worker = w.id AND j.queue = me.queue
) AS held
WHERE me.namespace = $1 AND me.id = $2 AND held.runs > 0
ORDER BY w.id`

// queueAndWorker tells whether a job's queue is paused, and who runs the job.
//
//   - job_pkey, queue_pkey and worker_pkey serve the looks.
const queueAndWorker = `SELECT
	EXISTS (SELECT FROM pawl.queue AS q WHERE q.namespace = $1 AND q.paused AND q.name = j.queue),
	coalesce(w.label, '')
FROM pawl.job AS j
LEFT JOIN pawl.worker AS w ON w.namespace = $1 AND w.id = j.worker
WHERE j.namespace = $1 AND j.id = $2`

// Situation gathers why a job is not running.
func (r *Room) Situation(ctx context.Context, id job.ID) (job.Situation, error) {
	var found []numbered
	var workers []store.WorkerInfo
	var runs []store.QueueRuns
	var now time.Time
	var ahead int
	var paused bool
	var label string
	err := r.pg.Read(ctx, func() []*pg.Statement {
		found, workers, runs = nil, nil, nil
		return []*pg.Statement{
			{Text: "SELECT {now}", Each: func(scan pg.Scan) error { return scan(&now) }},
			r.getStep([]job.ID{id}, &found),
			{Text: queueAndWorker, Args: []any{r.pg.Namespace, id}, Each: func(scan pg.Scan) error { return scan(&paused, &label) }},
			r.workers.RegistryStep(&workers, new(time.Time)),
			{Text: runsOfQueue, Args: []any{r.pg.Namespace, id}, Each: func(scan pg.Scan) error {
				var q store.QueueRuns
				err := scan(&q.Label, &q.Totals, &q.Lost, &q.Runs)
				runs = append(runs, q)
				return err
			}},
			{Text: aheadOf, Args: []any{r.pg.Namespace, id}, Each: func(scan pg.Scan) error { return scan(&ahead) }},
		}
	})
	if err != nil {
		return job.Situation{}, err
	}
	if len(found) == 0 {
		return job.Situation{}, fmt.Errorf("job %s: %w", id, job.ErrNotFound)
	}
	sit := job.Situation{Job: found[0].Job, Now: now.UTC()}
	if sit.Job.State.Final() {
		return sit, nil
	}
	sit.QueuePaused, sit.Label = paused, label
	sit.Ahead, sit.AheadCapped = min(ahead, maxAhead), ahead > maxAhead
	store.Situate(&sit, workers, runs)
	return sit, nil
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
