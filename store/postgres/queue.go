package postgres

import (
	"context"

	"github.com/pawlwork/pawl/store"
)

// SetPaused stops or allows claims from a queue.
func (s *settingRoom) SetPaused(ctx context.Context, queue string, paused bool, op store.Operator) error {
	if err := s.pg.enter(ctx); err != nil {
		return err
	}
	defer s.pg.leave()
	action := "resume"
	if paused {
		action = "pause"
	}
	err := s.pg.retry(ctx, action, unlessUnknown, func(ctx context.Context, _ bool) error {
		return s.pg.transact(ctx, s.pg.work, upkeepLimits, func(t *transaction) error {
			err := t.run(ctx, &statement{text: `INSERT INTO pawl.queue AS q (namespace, name, paused, since) VALUES ($1, $2, $3, {now})
				ON CONFLICT (namespace, name) DO UPDATE SET paused = excluded.paused, since = excluded.since WHERE q.paused <> excluded.paused`,
				args: []any{s.pg.namespace, queue, paused}})
			if err != nil {
				return err
			}
			return s.audit(ctx, t, op, action, []string{queue})
		})
	})
	if err != nil {
		return err
	}
	s.hints.lookAt(queue)
	return nil
}
