package lists

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

const (
	// countIn counts the jobs of a table and state, queue by queue: a seek for each
	// queue, and its entries up to a bound. The first %s is the table, the second the
	// state.
	countIn = `WITH RECURSIVE queues AS (
	(
		SELECT queue
		FROM %[1]s
		WHERE namespace = $1 AND state = %[2]d
		ORDER BY queue
		LIMIT 1
	)
	UNION ALL
	SELECT (
		SELECT a.queue
		FROM %[1]s AS a
		WHERE a.namespace = $1 AND a.state = %[2]d AND a.queue > queues.queue
		ORDER BY a.queue
		LIMIT 1
	)
	FROM queues
	WHERE queues.queue IS NOT NULL
)
SELECT queues.queue, counted.jobs
FROM queues
CROSS JOIN LATERAL (
	SELECT count(*) AS jobs
	FROM (
		SELECT
		FROM %[1]s AS a
		WHERE a.namespace = $1 AND a.state = %[2]d AND a.queue >= queues.queue AND a.queue <= queues.queue
		ORDER BY a.queue
		LIMIT $2
	) AS bounded
) AS counted
WHERE queues.queue IS NOT NULL`

	// countHeld counts what runs, is suspended or blocked, of all queues: job_held or
	// job_idle, up to a bound. The %s is the state, and the order of its index.
	countHeld = `SELECT queue, count(*)
FROM (
	SELECT queue
	FROM pawl.job
	WHERE namespace = $1 AND state = %d
	ORDER BY %s
	LIMIT $2
) AS bounded
GROUP BY queue`
)

// Counts counts the jobs of each queue in each state.
func (r *Room) Counts(ctx context.Context) ([]store.QueueCount, error) {
	var counts []store.QueueCount
	totals := map[job.State]int{}
	err := r.pg.Read(ctx, func() []*pg.Statement {
		counts = nil
		clear(totals)
		statements := []*pg.Statement{seek()}
		for _, s := range job.States() {
			text := ""
			switch {
			case s.Final():
				text = fmt.Sprintf(countIn, "pawl.job_archive", s)
			case s == job.Waiting:
				text = fmt.Sprintf(countIn, "pawl.job", s)
			case s == job.Running:
				text = fmt.Sprintf(countHeld, s, "worker, claim")
			default:
				text = fmt.Sprintf(countHeld, s, "id")
			}
			statements = append(statements, &pg.Statement{Text: text, Args: []any{r.pg.Namespace, store.MaxCounted + 1}, Each: func(scan pg.Scan) error {
				var queue string
				var n int
				err := scan(&queue, &n)
				counts = append(counts, store.QueueCount{Queue: queue, State: s, Counted: store.Bounded(n)})
				totals[s] += n
				return err
			}})
		}
		return statements
	})
	for i, c := range counts {
		if !c.State.Final() && c.State != job.Waiting {
			counts[i].More = totals[c.State] > store.MaxCounted
		}
	}
	store.SortCounts(counts)
	return counts, err
}
