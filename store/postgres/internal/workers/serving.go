package workers

import (
	"encoding/json"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// servingWorkers lists the queues, slots and totals of the live workers.
//
//   - worker_pkey lists the workers.
const servingWorkers = `SELECT label, queues, slots, totals
FROM pawl.worker
WHERE namespace = $1 AND lost IS NULL AND beat > {now} - lost_after * interval '1 microsecond'
ORDER BY id
LIMIT $2`

// ServingStep reads what the live workers serve: their labels, queues, slots and
// totals.
func (r *Room) ServingStep(serving *[]store.Worker) *pg.Statement {
	return &pg.Statement{Text: servingWorkers, Args: []any{r.pg.Namespace, store.MaxServing}, Each: func(scan pg.Scan) error {
		var w store.Worker
		var queues []pgtype.Text
		var slots []pgtype.Int4
		var totals []byte
		if err := scan(&w.Label, &queues, &slots, &totals); err != nil {
			return err
		}
		for _, q := range queues {
			w.Queues = append(w.Queues, q.String)
		}
		w.Slots = slotsOf(slots)
		if totals != nil && json.Unmarshal(totals, &w.Totals) != nil {
			w.Totals = nil // it costs that worker's part of the answer (P8)
		}
		*serving = append(*serving, w)
		return nil
	}}
}

// slotsOf reads slots; one that is NULL was not written by us, and is none.
func slotsOf(list []pgtype.Int4) (slots []int) {
	for _, n := range list {
		slots = append(slots, int(n.Int32))
	}
	return slots
}
