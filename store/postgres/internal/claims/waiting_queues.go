package claims

import (
	"context"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// waitingQueues lists queues with waiting jobs behind one.
//
//   - job_ready and job_gated serve it: a seek for each queue.
const waitingQueues = `WITH RECURSIVE found AS (
	SELECT least((
		SELECT job.queue
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 2 AND job.gate IS NULL AND job.queue > $2
		ORDER BY job.queue
		LIMIT 1
	), (
		SELECT job.queue
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 2 AND job.gate IS NOT NULL AND job.queue > $2
		ORDER BY job.queue
		LIMIT 1
	)) AS queue
	UNION ALL
	SELECT least((
		SELECT job.queue
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 2 AND job.gate IS NULL AND job.queue > f.queue
		ORDER BY job.queue
		LIMIT 1
	), (
		SELECT job.queue
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 2 AND job.gate IS NOT NULL AND job.queue > f.queue
		ORDER BY job.queue
		LIMIT 1
	))
	FROM found AS f
	WHERE f.queue IS NOT NULL
)
SELECT queue
FROM found
WHERE queue IS NOT NULL
LIMIT $3`

// WaitingQueues lists queues with waiting jobs behind one.
func (r *Room) WaitingQueues(ctx context.Context, after string, limit int) ([]string, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	var queues []string
	err := r.look(ctx, func() *pg.Statement {
		queues = nil
		return &pg.Statement{Text: waitingQueues, Args: []any{r.pg.Namespace, after, limit}, Each: func(scan pg.Scan) error {
			var name string
			err := scan(&name)
			queues = append(queues, name)
			return err
		}}
	})
	return queues, err
}
