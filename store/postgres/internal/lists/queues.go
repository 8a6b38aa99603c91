package lists

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// waitingIn counts what waits in queues ($2), ready and scheduled, each up to a
// bound ($3), and finds when the first of those that are ready fell due. Those
// behind gates are counted up to the bound together.
//
//   - job_ready, a stretch of it for each queue and priority, and job_gated, one for
//     each queue; whether a job has failed before is in the table.
var waitingIn = `SELECT q.name, ready.jobs, ready.retries, oldest.due, later.jobs, later.retries,
	gated.ready, gated.ready_retries, gated.oldest, gated.later, gated.later_retries
FROM unnest($2::text[]) AS q (name)
CROSS JOIN LATERAL (` + fmt.Sprintf(countDue, "<=") + `) AS ready
CROSS JOIN LATERAL (
	SELECT min(head.due) AS due
	FROM generate_series(1, 9) AS level
	CROSS JOIN LATERAL (
		SELECT due
		FROM pawl.job
		WHERE namespace = $1 AND state = 2 AND gate IS NULL
			AND queue = q.name AND priority = level::smallint AND due <= {now}
		ORDER BY due, id
		LIMIT 1
	) AS head
) AS oldest
CROSS JOIN LATERAL (` + fmt.Sprintf(countDue, ">") + `) AS later
CROSS JOIN LATERAL (
	SELECT
		count(*) FILTER (WHERE due <= {now}) AS ready,
		count(*) FILTER (WHERE due <= {now} AND used > 0) AS ready_retries,
		min(due) FILTER (WHERE due <= {now}) AS oldest,
		count(*) FILTER (WHERE due > {now}) AS later,
		count(*) FILTER (WHERE due > {now} AND used > 0) AS later_retries
	FROM (
		SELECT due, used
		FROM pawl.job
		WHERE namespace = $1 AND state = 2 AND gate IS NOT NULL AND queue = q.name
		ORDER BY gate, priority, due, id
		LIMIT $3
	) AS bounded
) AS gated`

// countDue counts the waiting jobs of a queue whose due time compares so with now.
const countDue = `
	SELECT count(*) AS jobs, count(*) FILTER (WHERE used > 0) AS retries
	FROM (
		SELECT counted.used
		FROM generate_series(1, 9) AS level
		CROSS JOIN LATERAL (
			SELECT used
			FROM pawl.job
			WHERE namespace = $1 AND state = 2 AND gate IS NULL
				AND queue = q.name AND priority = level::smallint AND due %s {now}
			ORDER BY due, id
			LIMIT $3
		) AS counted
		LIMIT $3
	) AS bounded
`

// Queues tells how queues stand: those named, or all that there are.
func (r *Room) Queues(ctx context.Context, names []string) ([]store.QueueState, error) {
	if err := store.CheckQueues(names); err != nil {
		return nil, err
	}
	facts, err := r.queueFacts(ctx, names)
	if err != nil {
		return nil, err
	}
	states := facts.States(names)
	at := make(map[string]*store.QueueState, len(states))
	some := make([]string, len(states))
	for i := range states {
		some[i] = states[i].Name
		at[some[i]] = &states[i]
	}
	cap := store.QueueCap(len(some))
	err = r.pg.Browse(ctx, func() []*pg.Statement {
		return []*pg.Statement{seek(), {Text: waitingIn, Args: []any{r.pg.Namespace, some, cap + 1}, Each: func(scan pg.Scan) error {
			var name string
			var plain, gated store.QueueWaits
			var oldest, oldestGated pgtype.Timestamptz
			err := scan(&name, &plain.Ready, &plain.ReadyRetries, &oldest, &plain.Scheduled, &plain.ScheduledRetries,
				&gated.Ready, &gated.ReadyRetries, &oldestGated, &gated.Scheduled, &gated.ScheduledRetries)
			if oldest.Valid {
				plain.Oldest = oldest.Time.UTC()
			}
			if oldestGated.Valid {
				gated.Oldest = oldestGated.Time.UTC()
			}
			if q := at[name]; q != nil {
				q.Waits(plain, gated, cap)
			}
			return err
		}}}
	})
	return states, err
}

// queueFacts reads what is known of queues beside what waits in each.
func (r *Room) queueFacts(ctx context.Context, names []string) (facts store.QueueFacts, err error) {
	err = r.pg.Browse(ctx, func() []*pg.Statement {
		facts = store.QueueFacts{Running: map[string]int{}}
		statements := []*pg.Statement{
			seek(),
			r.workers.ServingStep(&facts.Workers),
			r.settings.PausesStep(&facts.Pauses),
			r.settings.CoolDownsStep(&facts.Cooling),
			{Text: heldText(job.Running), Args: []any{r.pg.Namespace, store.MaxCounted + 1}, Each: func(scan pg.Scan) error {
				var queue string
				var n int
				err := scan(&queue, &n)
				facts.Running[queue] = n
				return err
			}},
		}
		if len(names) == 0 {
			statements = append(statements, r.queuesOf(job.Waiting, &facts.Waiting))
		}
		return statements
	})
	return facts, err
}
