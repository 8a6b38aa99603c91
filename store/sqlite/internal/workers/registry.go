package workers

import (
	"encoding/json"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// By primary key.
const raiseVersion = `UPDATE pawl_namespace
	SET registry = registry + 1
	WHERE id = ?`

// changeRegistry gives the registry a new version, in the commit that changes
// who shares totals.
func changeRegistry(t *lite.Session) error {
	return t.On(raiseVersion).Exec()
}

// allWorkers lists those that have not left.
//   - The primary key, in its order: those that left go with the next purge, when they hold nothing.
//   - pawl_job_held counts what each runs.
const allWorkers = `SELECT id, label, host, process, queues, offer, lost_after, started, beat, lost IS NOT NULL,
		machine, start, totals, split <> 0, owner, version,
		(SELECT count(*)
			FROM pawl_job INDEXED BY pawl_job_held
			WHERE pawl_job.namespace = pawl_worker.namespace
				AND state = 3 AND state <> 2 AND worker = pawl_worker.id),
		slots, remote
	FROM pawl_worker
	WHERE namespace = ? AND gone = 0
	ORDER BY id`

// Registry lists the workers.
func Registry(c *lite.Snapshot) ([]store.WorkerInfo, error) {
	var workers []store.WorkerInfo
	q := c.On(allWorkers)
	for q.Step() {
		w := store.WorkerInfo{
			ID: job.WorkerID(q.ColInt(0)),
			Worker: store.Worker{
				Label: q.ColText(1), Host: q.ColText(2), Process: int(q.ColInt(3)),
				LostAfter: time.Duration(q.ColInt(6)) * time.Microsecond,
				Machine:   q.ColText(10), Start: q.ColText(11), Owner: q.ColText(14), Version: q.ColText(15), Remote: q.ColBool(18),
			},
			Started: lite.TimeOf(q.ColInt(7)), Beat: lite.TimeOf(q.ColInt(8)), Lost: q.ColBool(9),
			Shares: q.ColBool(13), Running: int(q.ColInt(16)),
		}
		if json.Unmarshal([]byte(q.ColText(4)), &w.Worker.Queues) != nil {
			w.Worker.Queues, w.Unreadable = nil, append(w.Unreadable, "queues")
		}
		if slots := q.ColText(17); slots != "" && json.Unmarshal([]byte(slots), &w.Worker.Slots) != nil {
			w.Worker.Slots, w.Unreadable = nil, append(w.Unreadable, "slots")
		}
		if json.Unmarshal([]byte(q.ColText(5)), &w.Worker.Offer) != nil {
			w.Worker.Offer, w.Unreadable = job.Offer{}, append(w.Unreadable, "offer")
		}
		if totals := q.ColText(12); totals != "" && json.Unmarshal([]byte(totals), &w.Worker.Totals) != nil {
			w.Worker.Totals, w.Unreadable = nil, append(w.Unreadable, "totals")
		}
		workers = append(workers, w)
	}
	return workers, q.Done()
}

// liveOffers lists what live workers take.
//   - pawl_worker_live, in its order.
const liveOffers = `SELECT id, queues, offer
	FROM pawl_worker INDEXED BY pawl_worker_live
	WHERE namespace = ? AND lost IS NULL AND gone = 0 AND beat > ? - lost_after
	ORDER BY id`

// Served is what the live workers offer, by queue; nothing unless the one who
// asks is the first of them.
func Served(c *lite.Snapshot, by job.WorkerID, now int64) (store.Served, error) {
	served := store.Served{}
	q := c.On(liveOffers).Int(now)
	first := true
	for q.Step() {
		if first && job.WorkerID(q.ColInt(0)) != by {
			break
		}
		first = false
		var queues []string
		var offer job.Offer
		// What cannot be read of a worker, it does not serve or take, as far as anybody can tell (P8).
		if json.Unmarshal([]byte(q.ColText(1)), &queues) != nil {
			continue
		}
		if json.Unmarshal([]byte(q.ColText(2)), &offer) != nil {
			offer = job.Offer{}
		}
		for _, name := range queues {
			served[name] = append(served[name], offer)
		}
	}
	if err := q.Done(); err != nil {
		return nil, err
	}
	return served, nil
}

// By primary key.
const labelOf = `SELECT label
	FROM pawl_worker
	WHERE namespace = ? AND id = ?`

// Label is the name of a worker, empty when it is not registered.
func Label(c *lite.Snapshot, w job.WorkerID) (string, error) {
	name := ""
	q := c.On(labelOf).Int(int64(w))
	if q.Step() {
		name = q.ColText(0)
	}
	return name, q.Done()
}
