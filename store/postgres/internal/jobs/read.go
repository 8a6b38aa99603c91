package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// readJobs finds jobs in both tables in one snapshot: a job that moves from one
// to the other meanwhile is seen once.
//
//   - job_pkey and job_archive_pkey find the rows.
var readJobs = "SELECT " + LiveColumns + `, e.n
FROM (` + WantedIDs + `) AS e
JOIN pawl.job ON job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.want
UNION ALL
SELECT ` + ArchivedColumns + `, e.n
FROM (` + WantedIDs + `) AS e
JOIN pawl.job_archive AS a ON a.namespace = ANY (ARRAY[e.namespace]) AND a.id = e.want`

// WantedIDs are GivenIDs with their places.
const WantedIDs = "SELECT $1::int AS namespace, e.* FROM unnest($2::uuid[]) WITH ORDINALITY AS e (want, n) OFFSET 0"

// Get returns the jobs that exist, live or archived, in the order asked.
func (r *Room) Get(ctx context.Context, ids []job.ID) ([]job.Job, error) {
	if len(ids) == 0 {
		return nil, r.pg.Usable(ctx)
	}
	var found []Numbered
	err := r.pg.Read(ctx, func() []*pg.Statement {
		found = nil
		return []*pg.Statement{r.GetStep(ids, &found)}
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b Numbered) int { return a.N - b.N })
	jobs := make([]job.Job, len(found))
	for i := range found {
		jobs[i] = found[i].Job
	}
	return jobs, nil
}

// Numbered is a job with its place among those that were asked for, from 1.
type Numbered struct {
	job.Job
	N int
}

// GetStep is the statement that finds jobs, in any order.
func (r *Room) GetStep(ids []job.ID, found *[]Numbered) *pg.Statement {
	var rows RowReader
	return &pg.Statement{Text: readJobs, Args: []any{r.pg.Namespace, UUIDs(ids)}, Raw: func(cols [][]byte) error {
		*found = append(*found, Numbered{})
		f := &(*found)[len(*found)-1]
		if err := rows.Job(cols, &f.Job); err != nil {
			return err
		}
		f.N = int(rows.Int8())
		return rows.Err
	}}
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
	err = in.Run(ctx, &pg.Statement{Text: seenJobs, Args: []any{r.pg.Namespace, UUIDs(ids)}, Each: func(scan pg.Scan) error {
		var id job.ID
		err := scan(&id)
		seen = append(seen, id)
		return err
	}})
	return seen, err
}
