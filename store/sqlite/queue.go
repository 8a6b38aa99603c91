package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/store"
)

// SetPaused stops or allows claims from a queue.
func (s *Store) SetPaused(ctx context.Context, queue string, paused bool, op store.Operator) error {
	return s.write(ctx, 1, func(t *transition) error {
		err := t.on(`INSERT INTO pawl_queue (namespace, name, paused, since) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET paused = excluded.paused, since = excluded.since WHERE paused <> excluded.paused`).
			text(queue).bool(paused).int(t.now).exec()
		if err != nil {
			return err
		}
		action := "resume"
		if paused {
			action = "pause"
		}
		return t.audit(op, action, queue)
	})
}

// paused reports whether a queue gives nothing out.
func paused(c *snapshot, queue string) (bool, error) {
	return c.query("SELECT 1 FROM pawl_queue WHERE namespace = ? AND name = ? AND paused = 1").int(c.namespace).text(queue).found()
}
