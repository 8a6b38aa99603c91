package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Register enters one boot of one process and numbers it. When an answer is lost
// the process registers twice: the row nobody beats for is lost in time.
func (s *Store) Register(ctx context.Context, w store.Worker) (job.WorkerID, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	offer, err := json.Marshal(w.Offer)
	if err != nil {
		return 0, fmt.Errorf("pawl: encode the worker's offer: %w", err)
	}
	queues := w.Queues
	if queues == nil {
		queues = []string{}
	}
	var id job.WorkerID
	err = s.retry(ctx, "register", always, func(ctx context.Context, _ bool) error {
		for id = 0; id == 0; { // drawn anew when the number is taken
			err := s.send(ctx, s.reserved, upkeepLimits, &step{
				text: newWorker,
				args: []any{s.namespace, 1 + rand.Int64N(workerDraw), legible(w.Label), legible(w.Host), w.Process, queues, offer, w.LostAfter.Microseconds()},
				each: func(scan scan) error { return scan(&id) },
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.claims.know(id)
	return id, nil
}

// newWorker numbers a worker by time and chance, not by a sequence: a promoted
// standby or a restored backup may not know the last numbers that were given
// out, and would give them to others. Two processes with one number would renew
// each other's lease and give each other's jobs back (P2). Numbers ascend, and
// stay below 2^53 for two centuries, so that every reader of JSON keeps them exact.
const (
	newWorker = `INSERT INTO pawl.worker (namespace, id, label, host, process, queues, offer, lost_after, started, beat)
		SELECT $1, greatest((extract(epoch FROM {now}) * 1000000)::bigint, (SELECT max(id) FROM pawl.worker WHERE namespace = $1)) + $2,
			$3, $4, $5, $6, $7, $8, {now}, {now}
		ON CONFLICT DO NOTHING RETURNING id`
	workerDraw = 1 << 21
)

// beatWorker renews a lease and tells the worker all it wants to know in one
// statement: that it lives, its place among those that serve its queues, and its
// runs that were asked to cancel (job_cancel; only running jobs are asked).
const beatWorker = `WITH beaten AS (
	UPDATE pawl.worker SET beat = {now} WHERE namespace = $1 AND id = $2 AND lost IS NULL RETURNING id
)
SELECT 0 AS what, {now} AS now, NULL::text AS queue, 0::bigint AS count, 0::bigint AS index, NULL::uuid AS id, 0::bigint AS run FROM beaten
UNION ALL
SELECT 1, {now}, q.name, count(*), count(*) FILTER (WHERE o.id < $2), NULL, 0
FROM beaten CROSS JOIN pawl.worker AS o CROSS JOIN unnest(o.queues) AS q (name) WHERE o.namespace = $1 AND o.lost IS NULL
GROUP BY q.name HAVING bool_or(o.id = $2)
UNION ALL
SELECT 2, {now}, NULL, 0, 0, j.id, j.run FROM beaten JOIN pawl.job AS j ON j.namespace = $1 AND j.worker = $2 AND j.cancel`

// Beat renews the worker's lease.
func (s *Store) Beat(ctx context.Context, b store.Beat) (store.Beaten, error) {
	if err := s.enter(ctx); err != nil {
		return store.Beaten{}, err
	}
	defer s.leave()
	var beaten store.Beaten
	err := s.retry(ctx, "beat", always, func(ctx context.Context, _ bool) error {
		beaten = store.Beaten{Places: map[string]store.Place{}}
		steps := []*step{{text: beatWorker, args: []any{s.namespace, b.Worker}, each: func(scan scan) error {
			var what, count, index, run int64
			var queue pgtype.Text
			var id pgtype.UUID
			if err := scan(&what, &beaten.Now, &queue, &count, &index, &id, &run); err != nil {
				return err
			}
			switch what {
			case 1:
				beaten.Places[queue.String] = store.Place{Index: int(index), Count: int(count)}
			case 2:
				beaten.Cancels = append(beaten.Cancels, store.RunRef{ID: id.Bytes, Run: run})
			}
			return nil
		}}}
		if len(b.Begun) > 0 {
			steps = append(steps, s.begunStep(b.Worker, b.Begun))
		}
		return s.send(ctx, s.reserved, upkeepLimits, steps...)
	})
	if err != nil {
		return store.Beaten{}, err
	}
	if beaten.Now.IsZero() {
		s.claims.forget(b.Worker)
		return store.Beaten{}, fmt.Errorf("worker %d: %w", b.Worker, job.ErrWorkerLost)
	}
	beaten.Now = beaten.Now.UTC()
	return beaten, nil
}

// Cancels lists the worker's runs that were asked to cancel.
func (s *Store) Cancels(ctx context.Context, w job.WorkerID) ([]store.RunRef, error) {
	var refs []store.RunRef
	err := s.read(ctx, func() []*step {
		refs = nil
		return []*step{{
			text: "SELECT id, run FROM pawl.job WHERE namespace = $1 AND worker = $2 AND cancel ORDER BY id", args: []any{s.namespace, w},
			each: func(scan scan) error {
				var r store.RunRef
				err := scan(&r.ID, &r.Run)
				refs = append(refs, r)
				return err
			},
		}}
	})
	return refs, err
}

// Deregister removes a worker. Its row stays for a day, marked as gone
// (rescue.go says why); what it still holds is rescued.
func (s *Store) Deregister(ctx context.Context, w job.WorkerID) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	err := s.retry(ctx, "deregister", always, func(ctx context.Context, _ bool) error {
		return s.send(ctx, s.reserved, upkeepLimits, &step{
			text: "UPDATE pawl.worker SET gone = true, lost = coalesce(lost, {now}) WHERE namespace = $1 AND id = $2 AND NOT gone", args: []any{s.namespace, w},
		})
	})
	if err == nil {
		s.claims.forget(w)
	}
	return err
}

// readWorkers lists the registry; job_held counts what each one runs.
const readWorkers = `SELECT id, label, host, process, queues, offer, lost_after, started, beat, lost IS NOT NULL,
	(SELECT count(*) FROM pawl.job WHERE job.namespace = worker.namespace AND job.state = 3 AND job.worker = worker.id), {now}
FROM pawl.worker WHERE namespace = $1 AND NOT gone ORDER BY id`

// Registry lists the workers.
func (s *Store) Registry(ctx context.Context) ([]store.WorkerInfo, error) {
	var workers []store.WorkerInfo
	err := s.read(ctx, func() []*step {
		workers = nil
		return []*step{s.registryStep(&workers, new(time.Time))}
	})
	return workers, err
}

func (s *Store) registryStep(workers *[]store.WorkerInfo, now *time.Time) *step {
	return &step{text: readWorkers, args: []any{s.namespace}, each: func(scan scan) error {
		var w store.WorkerInfo
		var queues []pgtype.Text
		var offer []byte
		var micros int64
		var started, beat pgtype.Timestamptz // which may be infinity
		err := scan(&w.ID, &w.Worker.Label, &w.Worker.Host, &w.Worker.Process, &queues, &offer, &micros, &started, &beat, &w.Lost, &w.Running, now)
		if err != nil {
			return err
		}
		w.Worker.LostAfter = time.Duration(micros) * time.Microsecond
		w.Started, w.Beat = started.Time.UTC(), beat.Time.UTC()
		for _, q := range queues {
			w.Worker.Queues = append(w.Worker.Queues, q.String)
		}
		// One that cannot be read costs that worker's offer, not the list (P8).
		if json.Unmarshal(offer, &w.Worker.Offer) != nil {
			w.Worker.Offer, w.Unreadable = job.Offer{}, append(w.Unreadable, "offer")
		}
		*workers = append(*workers, w)
		return nil
	}}
}
