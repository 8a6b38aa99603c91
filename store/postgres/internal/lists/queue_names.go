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
	err = r.pg.Read(ctx, func() []*pg.Statement {
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
//   - job_archive_state or job_ready, see queuesIn.
func (r *Room) queuesOf(state job.State, names *[]string) *pg.Statement {
	return r.namesOf(queuesIn(state, ungated(state)), names)
}

// gatedQueues names the queues that have jobs behind gates, as many (job_gated).
func (r *Room) gatedQueues(names *[]string) *pg.Statement {
	return r.namesOf(queuesIn(job.Waiting, " AND gate IS NOT NULL"), names)
}

func (r *Room) namesOf(text string, names *[]string) *pg.Statement {
	return &pg.Statement{Text: text, Args: []any{r.pg.Namespace, store.MaxQueues + 1}, Each: func(scan pg.Scan) error {
		var name string
		err := scan(&name)
		*names = append(*names, name)
		return err
	}}
}

// tableOf is where jobs are that have ended, or that wait.
func tableOf(state job.State) string {
	if state.Final() {
		return "pawl.job_archive"
	}
	return "pawl.job"
}

// ungated is the rest of the condition of job_ready.
func ungated(state job.State) string {
	if state == job.Waiting {
		return " AND gate IS NULL"
	}
	return ""
}

func queuesIn(state job.State, gate string) string {
	return fmt.Sprintf(`WITH RECURSIVE queues AS (
	(
		SELECT queue
		FROM %[2]s
		WHERE namespace = $1 AND state = %[1]d%[3]s
		ORDER BY queue
		LIMIT 1
	)
	UNION ALL
	SELECT (
		SELECT a.queue
		FROM %[2]s AS a
		WHERE a.namespace = $1 AND a.state = %[1]d%[3]s AND a.queue > queues.queue
		ORDER BY a.queue
		LIMIT 1
	)
	FROM queues
	WHERE queues.queue IS NOT NULL
)
SELECT queue
FROM queues
WHERE queue IS NOT NULL
LIMIT $2`, state, tableOf(state), gate)
}
