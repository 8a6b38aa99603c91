package workers

import (
	"encoding/json"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// Boot is one boot of one process, as it is entered.
type Boot struct {
	*store.Worker
	offer, queues, slots, totals string
	declares                     []store.Declaration
}

// Encode writes down what a worker takes.
func Encode(w *store.Worker) (Boot, error) {
	declares, err := w.FormDeclares()
	if err != nil {
		return Boot{}, err
	}
	offer, err := json.Marshal(w.Offer)
	if err != nil {
		return Boot{}, fmt.Errorf("pawl: encode the worker's offer: %w", err)
	}
	queues, slots, totals, err := encodeServes(&store.Serves{Queues: w.Queues, Slots: w.Slots, Totals: w.Totals})
	if err != nil {
		return Boot{}, err
	}
	return Boot{w, string(offer), queues, slots, totals, declares}, nil
}

// encodeServes writes down which queues a worker serves, and its totals; empty means
// that it has none.
func encodeServes(s *store.Serves) (queues, slots, totals string, err error) {
	text, err := json.Marshal(s.Queues)
	if err != nil {
		return "", "", "", fmt.Errorf("pawl: encode the worker's queues: %w", err)
	}
	queues = string(text)
	if len(s.Slots) > 0 {
		if text, err = json.Marshal(s.Slots); err != nil {
			return "", "", "", fmt.Errorf("pawl: encode the worker's slots: %w", err)
		}
		slots = string(text)
	}
	if len(s.Totals) > 0 {
		if text, err = json.Marshal(s.Totals); err != nil {
			return "", "", "", fmt.Errorf("pawl: encode the worker's totals: %w", err)
		}
		totals = string(text)
	}
	return queues, slots, totals, nil
}

// What registers and removes a worker, by primary keys.
const (
	nextNumber = `UPDATE pawl_namespace
	SET last_worker = last_worker + 1
	WHERE id = ?
	RETURNING last_worker`

	insertWorker = `INSERT INTO pawl_worker (namespace, id, label, host, process, machine, start, owner, version, lock,
		queues, slots, totals, offer, lost_after, started, beat, remote)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

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
	err = t.On(insertWorker).
		Int(n).Text(w.Label).Text(w.Host).Int(int64(w.Process)).Text(w.Machine).Text(w.Start).Text(w.Owner).Text(w.Version).
		Text(alive.Take(t.Namespace, id)).
		Text(w.queues).TextOrNull(w.slots).TextOrNull(w.totals).Text(w.offer).
		Int(w.LostAfter.Microseconds()).Int(t.Now).Int(t.Now).Bool(w.Remote).Exec()
	if err != nil {
		return id, err
	}
	return id, settings.Declare(t, w.Worker, w.declares)
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
	leave := t.On(deleteWorker).Int(int64(w))
	if holds {
		leave = t.Query(markGone).Int(t.Now).Int(t.Namespace).Int(int64(w))
	}
	if err := leave.Exec(); err != nil {
		return err
	}
	return settings.EndVersions(t)
}

// Idle finds workers that are lost at ?2 and hold no job.
//   - pawl_worker_lost, in its order.
//   - pawl_job_held tells whether one holds a job.
const Idle = `SELECT w.id
		FROM pawl_worker AS w INDEXED BY pawl_worker_lost
		WHERE w.namespace = ?1 AND w.lost IS NOT NULL AND w.lost <= ?2
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
