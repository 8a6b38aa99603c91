package lists

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

const (
	// countIn counts the jobs of queues ($2) in a state, each up to a bound ($3). The %s
	// is what reads those of one.
	countIn = `SELECT q.name, counted.jobs
FROM unnest($2::text[]) AS q (name)
CROSS JOIN LATERAL (
	SELECT count(*) AS jobs
	FROM (
		%s
	) AS bounded
) AS counted
WHERE counted.jobs > 0`

	// readEnded reads those that ended in a state, which is the %d.
	//
	//   - job_archive_state, a stretch of it for each queue.
	readEnded = `SELECT
		FROM pawl.job_archive AS a
		WHERE a.namespace = $1 AND a.state = %d AND a.queue >= q.name AND a.queue <= q.name
		ORDER BY a.queue
		LIMIT $3`

	// readWaiting reads those that wait.
	//
	//   - job_ready and job_gated, a stretch of each for each queue.
	readWaiting = `(
			SELECT 1
			FROM pawl.job AS a
			WHERE a.namespace = $1 AND a.state = 2 AND a.gate IS NULL AND a.queue >= q.name AND a.queue <= q.name
			ORDER BY a.queue
			LIMIT $3
		)
		UNION ALL
		(
			SELECT 1
			FROM pawl.job AS a
			WHERE a.namespace = $1 AND a.state = 2 AND a.gate IS NOT NULL AND a.queue >= q.name AND a.queue <= q.name
			ORDER BY a.queue
			LIMIT $3
		)
		LIMIT $3`

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

// heldText is countHeld of a state.
func heldText(s job.State) string {
	if s == job.Running {
		return fmt.Sprintf(countHeld, s, "worker, claim")
	}
	return fmt.Sprintf(countHeld, s, "id")
}

// countText is countIn of a state.
func countText(s job.State) string {
	if s == job.Waiting {
		return fmt.Sprintf(countIn, readWaiting)
	}
	return fmt.Sprintf(countIn, fmt.Sprintf(readEnded, s))
}

// byQueue reports whether an index has the jobs of a state queue by queue.
func byQueue(s job.State) bool { return s.Final() || s == job.Waiting }

// Counts counts the jobs of each queue in each state.
func (r *Room) Counts(ctx context.Context) ([]store.QueueCount, error) {
	names := map[job.State]*[]string{}
	err := r.pg.Browse(ctx, func() []*pg.Statement {
		statements := []*pg.Statement{seek()}
		for _, s := range job.States() {
			if byQueue(s) {
				names[s] = new([]string)
				statements = append(statements, r.queuesOf(s, names[s]))
			}
		}
		return statements
	})
	if err != nil {
		return nil, err
	}
	var counts []store.QueueCount
	totals := map[job.State]int{}
	err = r.pg.Browse(ctx, func() []*pg.Statement {
		counts = nil
		clear(totals)
		statements := []*pg.Statement{seek()}
		for _, s := range job.States() {
			cap := store.MaxCounted
			each := func(scan pg.Scan) error {
				var queue string
				var n int
				err := scan(&queue, &n)
				counts = append(counts, store.QueueCount{Queue: queue, State: s, Counted: store.Bounded(n, cap)})
				totals[s] += n
				return err
			}
			if !byQueue(s) {
				statements = append(statements, &pg.Statement{Text: heldText(s), Args: []any{r.pg.Namespace, cap + 1}, Each: each})
				continue
			}
			some := store.FirstQueues(*names[s])
			cap = store.QueueCap(len(some))
			statements = append(statements, &pg.Statement{Text: countText(s), Args: []any{r.pg.Namespace, some, cap + 1}, Each: each})
		}
		return statements
	})
	for i, c := range counts {
		if !byQueue(c.State) {
			counts[i].More = totals[c.State] > store.MaxCounted
		}
	}
	store.SortCounts(counts)
	return counts, err
}
