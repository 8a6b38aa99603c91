package workers

import (
	"encoding/json"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// servingWorkers lists the queues, slots and totals of the live workers.
//   - pawl_worker_live, in its order.
const servingWorkers = `SELECT label, queues, slots, totals
	FROM pawl_worker INDEXED BY pawl_worker_live
	WHERE namespace = ? AND lost IS NULL AND gone = 0 AND beat > ? - lost_after
	ORDER BY id
	LIMIT ?`

// Serving is what the live workers serve: their labels, queues, slots and totals.
func Serving(c *lite.Snapshot, now int64) (list []store.Worker, err error) {
	q := c.On(servingWorkers).Int(now).Int(store.MaxServing)
	for q.Step() {
		w := store.Worker{Label: q.ColText(0)}
		// What cannot be read costs that worker's part of the answer (P8).
		if json.Unmarshal([]byte(q.ColText(1)), &w.Queues) != nil {
			w.Queues = nil
		}
		if slots := q.ColText(2); slots != "" && json.Unmarshal([]byte(slots), &w.Slots) != nil {
			w.Slots = nil
		}
		if totals := q.ColText(3); totals != "" && json.Unmarshal([]byte(totals), &w.Totals) != nil {
			w.Totals = nil
		}
		list = append(list, w)
	}
	return list, q.Done()
}
