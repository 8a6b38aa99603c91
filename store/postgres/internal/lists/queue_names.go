package lists

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// withQueues names the queues of stretches that go queue after queue. Where they are
// too many for that, the stretch is walked by its key.
func (r *Room) withQueues(ctx context.Context, list []stretch) (known []stretch, err error) {
	if !slices.ContainsFunc(list, func(s stretch) bool { return s.by != "" }) {
		return list, nil
	}
	names := make([][]string, len(list))
	err = r.pg.Browse(ctx, func() []*pg.Statement {
		statements := []*pg.Statement{seek()}
		for i, s := range list {
			if s.by != "" {
				names[i] = nil
				statements = append(statements, r.queuesOf(s.state, &names[i]))
			}
		}
		return statements
	})
	for i, s := range list {
		switch {
		case s.by == "":
		case len(names[i]) == 0:
			continue
		case len(names[i]) > store.MaxQueues:
			s.by, s.prefix = "", ""
			s.where = s.where[:1]
			s.match = append(s.match, when(fmt.Sprintf("state = %d", s.state)))
		default:
			s.each, s.lists = names[i], len(names[i])
		}
		known = append(known, s)
	}
	return known, err
}

// queuesOf names the queues that have jobs of a state, one more than MaxQueues at
// most. It steps from queue to queue: one seek for each.
//
//   - job_archive_state, or job_ready and job_gated, see queuesIn.
func (r *Room) queuesOf(state job.State, names *[]string) *pg.Statement {
	return &pg.Statement{Text: queuesIn(state), Args: []any{r.pg.Namespace, store.MaxQueues + 1}, Each: func(scan pg.Scan) error {
		var name string
		err := scan(&name)
		*names = append(*names, name)
		return err
	}}
}

// queuesIn steps from queue to queue of a state. What waits may be behind gates.
func queuesIn(state job.State) string {
	first := func(behind string) string {
		if state == job.Waiting {
			return "least(" + firstQueue("pawl.job", "state = 2 AND a.gate IS NULL"+behind) + ", " +
				firstQueue("pawl.job", "state = 2 AND a.gate IS NOT NULL"+behind) + ")"
		}
		return firstQueue("pawl.job_archive", fmt.Sprintf("state = %d%s", state, behind))
	}
	return `WITH RECURSIVE queues AS (
	SELECT ` + first("") + ` AS queue
	UNION ALL
	SELECT ` + first(" AND a.queue > queues.queue") + `
	FROM queues
	WHERE queues.queue IS NOT NULL
)
SELECT queue
FROM queues
WHERE queue IS NOT NULL
LIMIT $2`
}

// firstQueue is the first queue of those jobs.
//
//   - job_ready, job_gated or job_archive_state, by the condition.
func firstQueue(table, where string) string {
	return `(
		SELECT a.queue
		FROM ` + table + ` AS a
		WHERE a.namespace = $1 AND a.` + where + `
		ORDER BY a.queue
		LIMIT 1
	)`
}
