package workers

import (
	"encoding/json"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Boot is one boot of one process, as it is entered.
type Boot struct {
	*store.Worker
	offer, queues, slots, totals string
}

// Encode writes down what a worker takes.
func Encode(w *store.Worker) (Boot, error) {
	offer, err := json.Marshal(w.Offer)
	if err != nil {
		return Boot{}, fmt.Errorf("pawl: encode the worker's offer: %w", err)
	}
	queues, err := json.Marshal(w.Queues)
	if err != nil {
		return Boot{}, fmt.Errorf("pawl: encode the worker's queues: %w", err)
	}
	var slots []byte // NULL
	if len(w.Slots) > 0 {
		if slots, err = json.Marshal(w.Slots); err != nil {
			return Boot{}, fmt.Errorf("pawl: encode the worker's slots: %w", err)
		}
	}
	var totals []byte // NULL
	if len(w.Totals) > 0 {
		if totals, err = json.Marshal(w.Totals); err != nil {
			return Boot{}, fmt.Errorf("pawl: encode the worker's totals: %w", err)
		}
	}
	return Boot{w, string(offer), string(queues), string(slots), string(totals)}, nil
}

// What registers and removes a worker, by primary keys.
const (
	nextNumber = `UPDATE pawl_namespace
	SET last_worker = last_worker + 1
	WHERE id = ?
	RETURNING last_worker`

	insertWorker = `INSERT INTO pawl_worker (namespace, id, label, host, process, machine, start, lock,
		queues, slots, totals, offer, lost_after, started, beat)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	markGone = `UPDATE pawl_worker
	SET gone = 1, lost = coalesce(lost, ?)
	WHERE namespace = ? AND id = ?`

	deleteWorker = `DELETE FROM pawl_worker
	WHERE namespace = ? AND id = ?`
)

// Register enters a worker and numbers it. Its number is also returned with an error,
// because its byte is taken by then.
func (w Boot) Register(t *lite.Session, alive *lite.Alive) (id job.WorkerID, err error) {
	n, err := t.On(nextNumber).One()
	if err != nil {
		return 0, err
	}
	id = job.WorkerID(n)
	// The byte first: whoever sees the row sees the byte taken.
	return id, t.On(insertWorker).
		Int(n).Text(w.Label).Text(w.Host).Int(int64(w.Process)).Text(w.Machine).Text(w.Start).Text(alive.Take(t.Namespace, id)).
		Text(w.queues).TextOrNull(w.slots).TextOrNull(w.totals).Text(w.offer).Int(w.LostAfter.Microseconds()).Int(t.Now).Int(t.Now).Exec()
}

// Deregister removes a worker. While it holds jobs, its row stays, marked as
// gone, so that a check can tell how long they have been without an owner.
func Deregister(t *lite.Session, w job.WorkerID, holds bool) error {
	shared, err := t.On(liveSharer).Int(int64(w)).Found()
	if err != nil {
		return err
	}
	if shared {
		if err := changeRegistry(t); err != nil {
			return err
		}
	}
	if holds {
		return t.Query(markGone).Int(t.Now).Int(t.Namespace).Int(int64(w)).Exec()
	}
	return t.On(deleteWorker).Int(int64(w)).Exec()
}

// Idle finds workers that are lost at ?2 and hold no job.
//   - The primary key; a namespace has few workers.
//   - pawl_job_held tells whether one holds a job.
const Idle = `SELECT w.id
		FROM pawl_worker AS w
		WHERE w.namespace = ?1 AND w.lost <= ?2
			AND NOT EXISTS (
				SELECT 1
				FROM pawl_job AS j INDEXED BY pawl_job_held
				WHERE j.namespace = w.namespace AND j.state = 3 AND j.state <> 2 AND j.worker = w.id)`

// purgeLost removes them, by primary key.
const purgeLost = `DELETE FROM pawl_worker
	WHERE namespace = ?1 AND id IN (
		` + Idle + `
		LIMIT ?3)`

// Purge removes up to limit workers that are lost and hold no job.
func Purge(t *lite.Session, limit int) (int64, error) {
	return t.On(purgeLost).Int(t.Now).Int(int64(limit)).Changes()
}
