package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Register enters one boot of one process and numbers it. When an answer is lost
// the process registers twice: the row nobody beats for is lost in time.
func (r *Room) Register(ctx context.Context, w store.Worker) (job.WorkerID, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return 0, err
	}
	defer r.pg.Leave()
	declares, err := w.FormDeclares()
	if err != nil {
		return 0, err
	}
	offer, err := json.Marshal(w.Offer)
	if err != nil {
		return 0, fmt.Errorf("pawl: encode the worker's offer: %w", err)
	}
	queues, slots, totals, err := encodeServes(&store.Serves{Queues: w.Queues, Slots: w.Slots, Totals: w.Totals})
	if err != nil {
		return 0, err
	}
	var id job.WorkerID
	changed := false
	err = r.pg.Retry(ctx, "register", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Reserved, pg.UpkeepLimits, func(t *pg.Transaction) error {
			for id = 0; id == 0; { // drawn anew when the number is taken
				err := t.Run(ctx, &pg.Statement{
					Text: newWorker,
					Args: []any{r.pg.Namespace, 1 + rand.Int64N(workerDraw), pg.Legible(w.Label), pg.Legible(w.Host), w.Process, queues, offer, w.LostAfter.Microseconds(),
						pg.Legible(w.Machine), pg.Legible(w.Start), totals, w.Owner, w.Version, slots, w.Remote},
					Each: func(scan pg.Scan) error { return scan(&id) },
				})
				if err != nil {
					return err
				}
			}
			anew, err := r.settings.Declare(ctx, t, &w, declares)
			changed = changed || anew // also by a try whose answer was lost
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	if changed {
		r.hints.Notifier.Settings()
	}
	r.Asked.know(id)
	return id, nil
}

// encodeServes writes down which queues a worker serves, and its totals; nil means
// that it has none.
func encodeServes(s *store.Serves) (queues []string, slots []int, totals []byte, err error) {
	if queues = s.Queues; queues == nil {
		queues = []string{}
	}
	if len(s.Totals) > 0 {
		if totals, err = json.Marshal(s.Totals); err != nil {
			return nil, nil, nil, fmt.Errorf("pawl: encode the worker's totals: %w", err)
		}
	}
	return queues, s.Slots, totals, nil
}

// newWorker numbers a worker by time and chance, not by a sequence: a promoted
// standby or a restored backup may not know the last numbers that were given
// out, and would give them to others. Two processes with one number would renew
// each other's lease and give each other's jobs back (P2). Numbers ascend, and
// stay below 2^53 for two centuries, so that every reader of JSON keeps them exact.
//
//   - worker_pkey finds the highest number.
const newWorker = `WITH came AS (
	INSERT INTO pawl.worker (
		namespace, id, label, host, process, queues, offer, lost_after, started, beat,
		machine, start, totals, owner, version, slots, remote
	)
	SELECT $1,
		greatest(
			(extract(epoch FROM {now}) * 1000000)::bigint,
			(SELECT max(id) FROM pawl.worker WHERE namespace = $1)
		) + $2,
		$3, $4, $5, $6, $7, $8, {now}, {now}, $9, $10, $11::jsonb, $12, $13, $14::int[], $15
	ON CONFLICT DO NOTHING
	RETURNING id
)
INSERT INTO pawl.worker_beat (namespace, worker, at)
SELECT $1, id, {now}
FROM came
RETURNING worker`

// workerDraw is from how many numbers the chance of newWorker is drawn.
const workerDraw = 1 << 21

// Deregister removes a worker. Its row stays for a day, marked as gone
// (suspectsOf in mark_lost.go says why); what it still holds is rescued.
func (r *Room) Deregister(ctx context.Context, w job.WorkerID) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	changed, ended := false, false
	err := r.pg.Retry(ctx, "deregister", pg.Always, func(ctx context.Context, again bool) error {
		end := r.settings.EndSteps()
		err := r.pg.Send(ctx, r.pg.Reserved, pg.UpkeepLimits, append([]*pg.Statement{
			{Text: lockWorker, Args: []any{r.pg.Namespace, w}},
			{Text: removeWorker, Args: []any{r.pg.Namespace, w}, Each: func(scan pg.Scan) error { changed = true; return nil }},
		}, end...)...)
		ended = ended || again || end[1].Hits > 0
		return err
	})
	if err == nil {
		r.Asked.Forget(w)
		r.crews.Forget(w)
		if changed {
			r.hints.Notifier.Members()
		}
		if ended {
			r.hints.Notifier.Settings()
		}
	}
	return err
}

// lockWorker waits for the claims of a worker that are under way (worker_pkey). What they
// took is seen by the statement behind it.
const lockWorker = `SELECT
FROM pawl.worker
WHERE namespace = $1 AND id = $2 AND NOT gone
FOR UPDATE`

// removeWorker marks a worker as gone, and says so where it shared. It has no beat any
// more. One that holds nothing is nobody's business from then on.
//
//   - worker_pkey and worker_beat_pkey find it, job_held what it holds.
var removeWorker = `WITH was AS MATERIALIZED (
	SELECT id, lost IS NULL AND split <> 0 AS shares
	FROM pawl.worker
	WHERE namespace = $1 AND id = $2 AND NOT gone
	FOR UPDATE
), gone AS (
	UPDATE pawl.worker AS w
	SET gone = true, lost = coalesce(w.lost, {now}), drained = w.drained OR ` + HoldsNothing + `
	FROM was
	WHERE w.namespace = $1 AND w.id = was.id
), muted AS (
	DELETE FROM pawl.worker_beat AS b
	USING was
	WHERE ` + renewable + `
)
` + changeRegistry + ` AND EXISTS (SELECT FROM was WHERE shares)
RETURNING id`

// HoldsNothing is true of a worker w without a run (job_held).
const HoldsNothing = `(
		SELECT 1
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 3 AND job.worker = w.id
		LIMIT 1
	) IS NULL`
