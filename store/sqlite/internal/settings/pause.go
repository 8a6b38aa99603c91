package settings

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// What sets and reads a pause, by primary key.
const (
	setPause = `INSERT INTO pawl_queue (namespace, name, paused, since)
	VALUES (?, ?, ?, ?)
	ON CONFLICT DO UPDATE
	SET paused = excluded.paused, since = excluded.since
	WHERE paused <> excluded.paused`

	isPaused = `SELECT 1
	FROM pawl_queue
	WHERE namespace = ? AND name = ? AND paused = 1`
)

// SetPaused stops or allows claims from a queue.
func SetPaused(t *lite.Session, queue string, paused bool, op store.Operator) error {
	if err := t.On(setPause).Text(queue).Bool(paused).Int(t.Now).Exec(); err != nil {
		return err
	}
	action := "resume"
	if paused {
		action = "pause"
	}
	return Audit(t, op, action, queue)
}

// Paused reports whether a queue gives nothing out.
func Paused(c *lite.Snapshot, queue string) (bool, error) {
	return c.On(isPaused).Text(queue).Found()
}
