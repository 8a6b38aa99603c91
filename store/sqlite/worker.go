package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Register enters one boot of one process and numbers it.
func (s *Store) Register(ctx context.Context, w store.Worker) (id job.WorkerID, err error) {
	offer, err := json.Marshal(w.Offer)
	if err != nil {
		return 0, fmt.Errorf("pawl: encode the worker's offer: %w", err)
	}
	queues, err := json.Marshal(w.Queues)
	if err != nil {
		return 0, fmt.Errorf("pawl: encode the worker's queues: %w", err)
	}
	var totals []byte // NULL
	if len(w.Totals) > 0 {
		if totals, err = json.Marshal(w.Totals); err != nil {
			return 0, fmt.Errorf("pawl: encode the worker's totals: %w", err)
		}
		s.splits.Store(true)
	}
	err = s.write(ctx, 1, func(t *transition) error {
		n, err := t.Query("UPDATE pawl_namespace SET last_worker = last_worker + 1 WHERE id = ? RETURNING last_worker").Int(t.Namespace).One()
		if err != nil {
			return err
		}
		id = job.WorkerID(n)
		// The byte first: whoever sees the row sees the byte taken.
		return t.On(`INSERT INTO pawl_worker (namespace, id, label, host, process, machine, start, lock, queues, totals, offer, lost_after, started, beat)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`).
			Int(n).Text(w.Label).Text(w.Host).Int(int64(w.Process)).Text(w.Machine).Text(w.Start).Text(s.alive.Take(t.Namespace, id)).
			Text(string(queues)).TextOrNull(string(totals)).Text(string(offer)).Int(w.LostAfter.Microseconds()).Int(t.Now).Int(t.Now).Exec()
	})
	if err != nil {
		s.alive.Free(s.namespace, id)
		return 0, err
	}
	return id, nil
}

// changeRegistry gives the registry a new version, in the commit that changes
// who shares totals.
func (t *transition) changeRegistry() error {
	return t.On("UPDATE pawl_namespace SET registry = registry + 1 WHERE id = ?").Exec()
}

// liveWorker refuses workers that are not registered or were lost, and returns
// the number of the newest claim that took something.
func (t *transition) liveWorker(w job.WorkerID) (newest int64, err error) {
	q := t.On("SELECT claim FROM pawl_worker WHERE namespace = ? AND id = ? AND lost IS NULL").Int(int64(w))
	live := q.Step()
	if live {
		newest = q.ColInt(0)
	}
	if err := q.Done(); err != nil {
		return 0, err
	}
	if !live {
		return 0, fmt.Errorf("worker %d: %w", w, job.ErrWorkerLost)
	}
	return newest, nil
}

// Beat renews the worker's lease.
func (s *Store) Beat(ctx context.Context, b store.Beat) (beaten store.BeatReply, err error) {
	err = s.write(ctx, 1+len(b.Begun), func(t *transition) error {
		beaten = store.BeatReply{Now: lite.TimeOf(t.Now)}
		if _, err := t.liveWorker(b.Worker); err != nil {
			return err
		}
		// Who does not share yet is not told by this: it may begin to (splitting).
		if err := t.Query("UPDATE pawl_worker SET beat = ?1, split = CASE WHEN split = 0 OR ?2 = 0 THEN split ELSE ?2 END WHERE namespace = ?3 AND id = ?4").
			Int(t.Now).Int(b.Version).Int(t.Namespace).Int(int64(b.Worker)).Exec(); err != nil {
			return err
		}
		if err := t.markBegun(b.Worker, b.Begun); err != nil {
			return err
		}
		var err error
		if beaten.Cancels, err = cancels(&t.Snapshot, b.Worker); err != nil {
			return err
		}
		if b.Splits {
			return t.splitting(&b, &beaten)
		}
		return nil
	})
	if err != nil {
		return store.BeatReply{}, err
	}
	return beaten, nil
}

// Cancels lists the worker's runs that were asked to cancel.
func (s *Store) Cancels(ctx context.Context, w job.WorkerID) (refs []store.RunRef, err error) {
	err = s.read(ctx, func(c *lite.Snapshot) (err error) {
		refs, err = cancels(c, w)
		return err
	})
	return refs, err
}

// cancels reads pawl_job_cancel, which is empty when nobody cancels.
func cancels(c *lite.Snapshot, w job.WorkerID) ([]store.RunRef, error) {
	var refs []store.RunRef
	q := c.Query("SELECT id, run FROM pawl_job INDEXED BY pawl_job_cancel WHERE namespace = ? AND cancel = 1 AND worker = ? AND state = 3").Int(c.Namespace).Int(int64(w))
	for q.Step() {
		refs = append(refs, store.RunRef{ID: q.ColID(0), Run: q.ColInt(1)})
	}
	return refs, q.Done()
}

// splitting tells the registry's version, whether it is settled (store.BeatReply),
// and who shares each of the worker's totals; then the worker may begin to.
func (t *transition) splitting(b *store.Beat, beaten *store.BeatReply) (err error) {
	if beaten.Version, err = t.On("SELECT registry FROM pawl_namespace WHERE id = ?").One(); err != nil {
		return err
	}
	q := t.On(`SELECT o.id, o.totals, o.split FROM pawl_worker AS o
		WHERE o.namespace = ?1 AND o.lost IS NULL AND o.totals IS NOT NULL AND (o.split <> 0 OR o.id = ?2) ORDER BY o.id`).Int(int64(b.Worker))
	crews := store.Crews{Worker: b.Worker}
	apart, may := false, b.Version != 0
	beaten.Settled = true
	for q.Step() {
		o, split := job.WorkerID(q.ColInt(0)), q.ColInt(2)
		crews.Add(o, []byte(q.ColText(1)), split != 0)
		if o == b.Worker {
			apart = split == 0
			continue
		}
		beaten.Settled = beaten.Settled && split == beaten.Version
		may = may && split >= b.Version
	}
	if err := q.Done(); err != nil {
		return err
	}
	// pawl_job_held tells what those hold that left or were lost.
	q = t.On(`SELECT o.totals, j.queue, count(*) FROM pawl_worker AS o CROSS JOIN pawl_job AS j INDEXED BY pawl_job_held
		WHERE o.namespace = ?1 AND o.lost IS NOT NULL AND o.totals IS NOT NULL AND j.namespace = ?1 AND j.state = 3 AND j.state <> 2 AND j.worker = o.id
		GROUP BY o.id, j.queue`)
	for q.Step() {
		crews.AddHeld([]byte(q.ColText(0)), q.ColText(1), int(q.ColInt(2)))
	}
	if err := q.Done(); err != nil {
		return err
	}
	beaten.Crews = crews.Mine()
	if !apart || !may {
		return nil
	}
	if err := t.On("UPDATE pawl_worker SET split = ?3 WHERE namespace = ?1 AND id = ?2").Int(int64(b.Worker)).Int(b.Version).Exec(); err != nil {
		return err
	}
	return t.changeRegistry()
}

// ReportRuns reports the runs a worker holds. What is leased to it beyond them was
// lost on the way, in the answer of a claim, and goes back.
func (s *Store) ReportRuns(ctx context.Context, w job.WorkerID, refs []store.RunRef) (held store.ReportReply, err error) {
	err = s.write(ctx, len(refs)+1, func(t *transition) (err error) {
		held, err = t.hold(w, refs)
		return err
	})
	if err != nil {
		return store.ReportReply{}, err
	}
	return held, nil
}

func (t *transition) hold(w job.WorkerID, refs []store.RunRef) (held store.ReportReply, err error) {
	if _, err := t.liveWorker(w); err != nil {
		return held, err
	}
	leased, err := subjects(t.On("SELECT " + subjectColumns + " FROM " + running + " AND worker = ?").Int(int64(w)))
	if err != nil {
		return held, err
	}
	owned := make(map[store.RunRef]bool, len(leased))
	for _, s := range leased {
		owned[store.RunRef{ID: s.id, Run: s.run}] = true
	}
	reported := make(map[store.RunRef]bool, len(refs))
	for _, r := range refs {
		reported[r] = true
		if !owned[r] {
			held.Stale = append(held.Stale, r)
		}
	}
	for i := range leased {
		s := &leased[i]
		if reported[store.RunRef{ID: s.id, Run: s.run}] {
			continue
		}
		end := job.End{ID: s.id, Run: s.run, To: job.Waiting, Keep: t.keep(s.queue)}
		if err := t.move(s, job.Settle(end, s.cancel), false); err != nil {
			return held, err
		}
		held.Returned++
	}
	return held, nil
}

// Deregister removes a worker. While jobs name it, its row stays, marked as
// gone, so that a check can tell how long they have been without an owner.
func (s *Store) Deregister(ctx context.Context, w job.WorkerID) error {
	err := s.write(ctx, 1, func(t *transition) error {
		holds, err := t.On("SELECT 1 FROM " + running + " AND worker = ? LIMIT 1").Int(int64(w)).Found()
		if err != nil {
			return err
		}
		shared, err := t.On("SELECT 1 FROM pawl_worker WHERE namespace = ? AND id = ? AND lost IS NULL AND split <> 0").Int(int64(w)).Found()
		if err != nil {
			return err
		}
		if shared {
			if err := t.changeRegistry(); err != nil {
				return err
			}
		}
		if holds {
			return t.Query("UPDATE pawl_worker SET gone = 1, lost = coalesce(lost, ?) WHERE namespace = ? AND id = ?").
				Int(t.Now).Int(t.Namespace).Int(int64(w)).Exec()
		}
		return t.On("DELETE FROM pawl_worker WHERE namespace = ? AND id = ?").Int(int64(w)).Exec()
	})
	if err == nil {
		s.claims.forget(w)
		s.alive.Free(s.namespace, w)
	}
	return err
}

// Registry lists the workers.
func (s *Store) Registry(ctx context.Context) (workers []store.WorkerInfo, err error) {
	err = s.read(ctx, func(c *lite.Snapshot) (err error) {
		workers, err = registry(c)
		return err
	})
	return workers, err
}

func registry(c *lite.Snapshot) ([]store.WorkerInfo, error) {
	var workers []store.WorkerInfo
	q := c.Query(`SELECT id, label, host, process, queues, offer, lost_after, started, beat, lost IS NOT NULL, machine, start, totals, split <> 0,
			(SELECT count(*) FROM pawl_job INDEXED BY pawl_job_held WHERE pawl_job.namespace = pawl_worker.namespace AND state = 3 AND state <> 2 AND worker = pawl_worker.id)
		FROM pawl_worker WHERE namespace = ? AND gone = 0 ORDER BY id`).Int(c.Namespace)
	for q.Step() {
		w := store.WorkerInfo{
			ID: job.WorkerID(q.ColInt(0)),
			Worker: store.Worker{
				Label: q.ColText(1), Host: q.ColText(2), Process: int(q.ColInt(3)), LostAfter: time.Duration(q.ColInt(6)) * time.Microsecond,
				Machine: q.ColText(10), Start: q.ColText(11),
			},
			Started: lite.TimeOf(q.ColInt(7)), Beat: lite.TimeOf(q.ColInt(8)), Lost: q.ColBool(9), Shares: q.ColBool(13), Running: int(q.ColInt(14)),
		}
		if json.Unmarshal([]byte(q.ColText(4)), &w.Worker.Queues) != nil {
			w.Worker.Queues, w.Unreadable = nil, append(w.Unreadable, "queues")
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
