package settings

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// SetPaused stops or allows claims from a queue.
func (s *Room) SetPaused(ctx context.Context, queue string, paused bool, op store.Operator) error {
	if err := s.pg.Enter(ctx); err != nil {
		return err
	}
	defer s.pg.Leave()
	action := "resume"
	if paused {
		action = "pause"
	}
	err := s.pg.Retry(ctx, action, pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return s.pg.Transact(ctx, s.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			err := t.Run(ctx, &pg.Statement{Text: `INSERT INTO pawl.queue AS q (namespace, name, paused, since) VALUES ($1, $2, $3, {now})
				ON CONFLICT (namespace, name) DO UPDATE SET paused = excluded.paused, since = excluded.since WHERE q.paused <> excluded.paused`,
				Args: []any{s.pg.Namespace, queue, paused}})
			if err != nil {
				return err
			}
			return s.Record(ctx, t, op, action, []string{queue})
		})
	})
	if err != nil {
		return err
	}
	s.hints.LookAt(queue)
	return nil
}
