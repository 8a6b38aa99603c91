package settings

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// pausedQueues lists paused queues.
//   - The primary key, in its order.
const pausedQueues = `SELECT name, since
	FROM pawl_queue
	WHERE namespace = ? AND paused = 1
	ORDER BY name`

// Pauses lists the pauses of queues, by name.
func Pauses(c *lite.Snapshot) (pauses []store.Pause, err error) {
	q := c.On(pausedQueues)
	for q.Step() {
		pauses = append(pauses, store.Pause{Scope: store.PauseQueue, Name: q.ColText(0), Since: lite.TimeOf(q.ColInt(1))})
	}
	return pauses, q.Done()
}
