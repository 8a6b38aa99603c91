package jobs

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Jobs past their deadline that are not running.
//
//   - job_deadline holds those with a deadline that are not running.
const fromLate = `
FROM pawl.job
WHERE namespace = $1
	AND deadline IS NOT NULL
	AND state <> 3
	AND state IN (1, 2, 4)
	AND deadline <= {now}`

var lockLate = "SELECT " + subjectColumns + fromLate + `
ORDER BY deadline
LIMIT $2
FOR UPDATE SKIP LOCKED`

// Expire ends up to limit jobs that are not running and past their deadline. A
// running one is ended by its worker, which has the handler to stop.
func (r *Room) Expire(ctx context.Context, limit int) (store.ExpireReply, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return store.ExpireReply{}, err
	}
	defer r.pg.Leave()
	some := false
	err := r.pg.Retry(ctx, "expire", pg.Reading, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Upkeep, nil, &pg.Statement{
			Text: "SELECT EXISTS (SELECT" + fromLate + ")",
			Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error { return scan(&some) },
		})
	})
	if err != nil || !some {
		return store.ExpireReply{}, err
	}
	moves, err := r.transit(ctx, "expire", func(ctx context.Context, t pg.Session, f *followed) ([]job.Move, hints.Set, error) {
		late := lockBy(lockLate, r.pg.Namespace, limit)
		return r.moveAll(ctx, t, f, late, func(l *job.Subject) job.End { return job.Expire(l, r.keep(l.Queue)) })
	})
	var expired store.ExpireReply
	for i := range moves {
		expired.Add(&moves[i])
	}
	return expired, err
}

// redateJobs makes jobs due now whose time came before the clock was set back.
//
//   - job_ready finds them: a seek per queue and priority, over that stretch only.
const redateJobs = `WITH early AS MATERIALIZED (
	SELECT j.place
	FROM unnest($2::text[]) AS q (name)
	CROSS JOIN unnest($3::smallint[]) AS p (priority)
	CROSS JOIN LATERAL (
		SELECT ctid AS place
		FROM pawl.job
		WHERE namespace = $1
			AND queue = q.name
			AND state = 2
			AND gate IS NULL
			AND priority = p.priority
			AND due > {now}
			AND due <= $4
			AND (created > {now} OR created < {now} - $5::bigint * interval '1 microsecond')
		ORDER BY due, id
		LIMIT $6
		FOR UPDATE SKIP LOCKED
	) AS j
	LIMIT $6
)
UPDATE pawl.job
SET due = {now}
FROM early
WHERE job.ctid = early.place
RETURNING job.queue, job.priority, job.due`

// redateGated does so behind the gates of the queues, all of which it looks
// through: clocks are seldom set back.
//
//   - job_gated finds them.
const redateGated = `WITH early AS MATERIALIZED (
	SELECT j.place
	FROM unnest($2::text[]) AS q (name)
	CROSS JOIN LATERAL (
		SELECT ctid AS place
		FROM pawl.job
		WHERE namespace = $1
			AND queue = q.name
			AND state = 2
			AND gate IS NOT NULL
			AND due > {now}
			AND due <= $3
			AND (created > {now} OR created < {now} - $4::bigint * interval '1 microsecond')
		LIMIT $5
		FOR UPDATE SKIP LOCKED
	) AS j
	LIMIT $5
)
UPDATE pawl.job
SET due = {now}
FROM early
WHERE job.ctid = early.place
RETURNING job.queue, job.priority, job.due`

// MakeDueAgain makes up to limit jobs ready whose due time the clock had reached.
func (r *Room) MakeDueAgain(ctx context.Context, b store.ClockStep, limit int) (int, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return 0, err
	}
	defer r.pg.Leave()
	var told hints.Set
	redated := 0
	err := r.pg.Retry(ctx, "redate", pg.Always, func(ctx context.Context, _ bool) error {
		told, redated = nil, 0
		each := func(scan pg.Scan) error {
			var queue string
			var priority int
			var due time.Time
			err := scan(&queue, &priority, &due)
			told.Add(queue, priority, due)
			redated++
			return err
		}
		was, within := b.Was, b.Within.Microseconds()
		err := r.pg.Send(ctx, r.pg.Upkeep, pg.UpkeepLimits,
			&pg.Statement{Text: redateJobs, Args: []any{r.pg.Namespace, b.Queues, Priorities, was, within, limit}, Each: each})
		if err != nil || redated >= limit {
			return err
		}
		return r.pg.Send(ctx, r.pg.Upkeep, pg.UpkeepLimits,
			&pg.Statement{Text: redateGated, Args: []any{r.pg.Namespace, b.Queues, was, within, limit - redated}, Each: each})
	})
	if err != nil {
		return 0, err
	}
	r.hints.Tell(told)
	return redated, nil
}
