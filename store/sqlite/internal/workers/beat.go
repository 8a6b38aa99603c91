package workers

import (
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/crews"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// newestClaim is that of a live worker, with the revision of the settings, by
// primary keys.
const newestClaim = `SELECT w.claim, n.revision
	FROM pawl_worker AS w
	CROSS JOIN pawl_namespace AS n ON n.id = w.namespace
	WHERE w.namespace = ? AND w.id = ? AND w.lost IS NULL`

// Claimant refuses workers that are not registered or were lost, and returns the
// number of the newest claim that took something, and the revision of the settings.
func Claimant(t *lite.Session, w job.WorkerID) (newest, revision int64, err error) {
	q := t.On(newestClaim).Int(int64(w))
	live := q.Step()
	if live {
		newest, revision = q.ColInt(0), q.ColInt(1)
	}
	if err := q.Done(); err != nil {
		return 0, 0, err
	}
	if !live {
		return 0, 0, fmt.Errorf("worker %d: %w", w, job.ErrWorkerLost)
	}
	return newest, revision, nil
}

// Live refuses workers that are not registered or were lost.
func Live(t *lite.Session, w job.WorkerID) error {
	_, _, err := Claimant(t, w)
	return err
}

// renew is a beat, and says whether the worker is the leader: the first that is
// not lost and not remote. Who left is lost, too.
//   - The primary key; pawl_worker_live, in its order.
//   - Who does not share yet is not told by this: it may begin to (ShareTotals).
const renew = `UPDATE pawl_worker
	SET beat = ?1, split = CASE WHEN split = 0 OR ?2 = 0 THEN split ELSE max(split, ?2) END
	WHERE namespace = ?3 AND id = ?4
	RETURNING id = (
		SELECT l.id
		FROM pawl_worker AS l INDEXED BY pawl_worker_live
		WHERE l.namespace = ?3 AND l.lost IS NULL AND l.remote = 0
		ORDER BY l.id
		LIMIT 1), (SELECT revision FROM pawl_namespace WHERE id = ?3)`

// Beat renews a worker's lease.
func Beat(t *lite.Session, b *store.Beat) (store.BeatReply, error) {
	beaten := store.BeatReply{Now: lite.TimeOf(t.Now)}
	if err := Live(t, b.Worker); err != nil {
		return beaten, err
	}
	if err := serve(t, b); err != nil {
		return beaten, err
	}
	q := t.Query(renew).Int(t.Now).Int(b.Version).Int(t.Namespace).Int(int64(b.Worker))
	if q.Step() {
		beaten.Leader, beaten.Revision = q.ColBool(0), q.ColInt(1)
	}
	return beaten, q.Done()
}

// What replaces the queues and totals of a worker, by primary key. Who has no total
// any more does not share, and is a newcomer when it has one again.
const (
	sharesOthers = `SELECT 1
	FROM pawl_worker
	WHERE namespace = ? AND id = ? AND split <> 0 AND totals IS NOT ?`

	setServes = `UPDATE pawl_worker
	SET queues = ?3, totals = ?4, slots = ?5, split = CASE WHEN ?4 IS NULL THEN 0 ELSE split END
	WHERE namespace = ?1 AND id = ?2`
)

// serve replaces what a worker serves, where its beat says so.
func serve(t *lite.Session, b *store.Beat) error {
	if b.Serves == nil {
		return nil
	}
	queues, slots, totals, err := encodeServes(b.Serves)
	if err != nil {
		return err
	}
	changed, err := t.On(sharesOthers).Int(int64(b.Worker)).TextOrNull(totals).Found()
	if err != nil {
		return err
	}
	if changed {
		if err := changeRegistry(t); err != nil {
			return err
		}
	}
	return t.On(setServes).Int(int64(b.Worker)).Text(queues).TextOrNull(totals).TextOrNull(slots).Exec()
}

// What ShareTotals reads and writes, by primary keys but for the sharers, whom
// pawl_worker_live gives, and the last.
const (
	registryVersion = `SELECT registry
	FROM pawl_namespace
	WHERE id = ?`

	sharers = `SELECT id, totals, split
	FROM pawl_worker INDEXED BY pawl_worker_live
	WHERE namespace = ?1 AND lost IS NULL AND totals IS NOT NULL AND (split <> 0 OR id = ?2)
	ORDER BY id`

	beginToShare = `UPDATE pawl_worker
	SET split = ?3
	WHERE namespace = ?1 AND id = ?2`

	// pawl_worker_lost gives those that left or were lost, pawl_job_held what they hold.
	// Those that shared: else the answer would change within a version of the registry;
	// a purge removes those that hold nothing.
	heldByLost = `SELECT o.totals, j.queue, count(*)
	FROM pawl_worker AS o INDEXED BY pawl_worker_lost
	CROSS JOIN pawl_job AS j INDEXED BY pawl_job_held
	WHERE o.namespace = ?1 AND o.lost IS NOT NULL AND o.totals IS NOT NULL AND o.split <> 0
		AND j.namespace = ?1 AND j.state = 3 AND j.state <> 2 AND j.worker = o.id
	GROUP BY o.id, j.queue`
)

// ShareTotals tells the registry's version, whether it is settled (store.BeatReply),
// and who shares each of the worker's totals; then the worker may begin to. Where that is
// known for the version, nobody else is read.
func ShareTotals(t *lite.Session, b *store.Beat, beaten *store.BeatReply, known *crews.Known) (err error) {
	if beaten.Version, err = t.On(registryVersion).One(); err != nil {
		return err
	}
	if crews, ok := known.Of(b.Worker, beaten.Version); ok && b.Version == beaten.Version {
		beaten.Settled, beaten.Crews = true, crews
		return nil
	}
	q := t.On(sharers).Int(int64(b.Worker))
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
	q = t.On(heldByLost)
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
	if err := t.On(beginToShare).Int(int64(b.Worker)).Int(b.Version).Exec(); err != nil {
		return err
	}
	return changeRegistry(t)
}
