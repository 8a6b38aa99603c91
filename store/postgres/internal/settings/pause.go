package settings

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// setPaused marks a queue (queue_pkey), unless it is so already.
const setPaused = `INSERT INTO pawl.queue AS q (namespace, name, paused, since)
VALUES ($1, $2, $3, {now})
ON CONFLICT (namespace, name) DO UPDATE SET paused = excluded.paused, since = excluded.since
WHERE q.paused <> excluded.paused`

// SetPaused stops or allows claims from a queue.
func (r *Room) SetPaused(ctx context.Context, queue string, paused bool, op store.Operator) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	action := "resume"
	if paused {
		action = "pause"
	}
	err := r.pg.Retry(ctx, action, pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			err := t.Run(ctx, &pg.Statement{Text: setPaused, Args: []any{r.pg.Namespace, queue, paused}})
			if err != nil {
				return err
			}
			return r.Record(ctx, t, op, action, []string{queue})
		})
	})
	if err != nil {
		return err
	}
	r.hints.LookAt(queue)
	return nil
}
