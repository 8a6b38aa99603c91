package postgres

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
)

// redateJobs makes jobs due now whose time came before the clock was set back:
// a seek per queue and priority on job_ready, over that stretch only.
const redateJobs = `WITH early AS MATERIALIZED (
	SELECT j.place FROM unnest($2::text[]) AS q (name) CROSS JOIN unnest($3::smallint[]) AS p (priority)
	CROSS JOIN LATERAL (
		SELECT ctid AS place FROM pawl.job
		WHERE namespace = $1 AND queue = q.name AND state = 2 AND priority = p.priority AND due > {now} AND due <= $4
			AND (created > {now} OR created < {now} - $5::bigint * interval '1 microsecond')
		ORDER BY due, id LIMIT $6 FOR UPDATE SKIP LOCKED
	) AS j
	LIMIT $6
)
UPDATE pawl.job SET due = {now} FROM early WHERE job.ctid = early.place RETURNING job.queue, job.priority, job.due`

// MakeDueAgain makes up to limit jobs ready whose due time the clock had reached.
func (s *Store) MakeDueAgain(ctx context.Context, b store.ClockStep, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	var told hintSet
	redated := 0
	err := s.retry(ctx, "redate", always, func(ctx context.Context, _ bool) error {
		told, redated = nil, 0
		return s.send(ctx, s.reserved, upkeepLimits, &statement{
			text: redateJobs, args: []any{s.namespace, b.Queues, priorities, b.Was, b.Within.Microseconds(), limit},
			each: func(scan scan) error {
				var queue string
				var priority int
				var due time.Time
				err := scan(&queue, &priority, &due)
				told.add(queue, priority, due)
				redated++
				return err
			},
		})
	})
	if err != nil {
		return 0, err
	}
	s.tell(told)
	return redated, nil
}
