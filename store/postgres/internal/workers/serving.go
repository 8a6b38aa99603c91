package workers

import (
	"encoding/json"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// servingWorkers lists the queues, slots and totals of the live workers, in their order.
var servingWorkers = `SELECT w.label, w.queues, w.slots, w.totals
` + live + `
ORDER BY w.id
LIMIT $2`

// ServedQueues lists the queues of the live workers with what is offered there,
// if the one who asks ($2) is the first of them. A fleet has few different offers.
var ServedQueues = `WITH leader AS MATERIALIZED (
	SELECT w.id
	` + live + `
	ORDER BY w.id
	LIMIT 1
)
SELECT DISTINCT q.name, served.offer
FROM leader
CROSS JOIN LATERAL (
	SELECT w.queues, w.offer
	` + live + `
) AS served
CROSS JOIN unnest(served.queues) AS q (name)
WHERE leader.id = $2`

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
