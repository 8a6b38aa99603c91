package workers

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// The leader is the first worker that is not lost and not remote, from a remembered number on
// (leader.go). Who left is lost, too. Where there is none, it is the one who asks.
//
//   - worker_pkey, in its order, up to the first that lives.
const (
	leaderFrom = `coalesce((
		SELECT l.id
		FROM pawl.worker AS l
		WHERE l.namespace = $1 AND l.lost IS NULL AND NOT l.remote AND l.id >= `
	leaderElse = ` ORDER BY l.id LIMIT 1), $2)`
)

// beatWorker renews a lease and tells the worker all it wants to know in one
// statement: that it lives, who leads, the revision of what is declared and set, and
// its runs that were asked to cancel.
//
//   - worker_pkey finds the worker, namespace_pkey the revision, job_cancel the runs: only running jobs are asked.
const beatWorker = `WITH beaten AS (
	UPDATE pawl.worker
	SET beat = {now}
	WHERE namespace = $1 AND id = $2 AND lost IS NULL
	RETURNING id
)
SELECT 0 AS what, {now} AS now, NULL::uuid AS id, 0::bigint AS run, ` + leaderFrom + `$3` + leaderElse + ` AS leader,
	` + settings.Revision + ` AS revision
FROM beaten
UNION ALL
SELECT 1, {now}, j.id, j.run, 0, 0
FROM beaten
JOIN pawl.job AS j ON j.namespace = $1 AND j.worker = $2 AND j.cancel`

// beatSplitting is the beat of a worker with totals: it also stores by which
// version the worker splits them, and tells the version there is now, whether it
// is settled (store.BeatReply), and who shares each of the worker's totals. All that
// it tells is of one snapshot, in which the worker does not share if it begins to
// by this beat (split, which was 0): the version that it makes may be that of
// others, too, who are not in the snapshot.
//
//   - worker_pkey finds the workers, job_cancel the runs that were asked to cancel.
//   - job_held tells what those hold that left; they are few: a rescue drains them
//     within seconds.
const beatSplitting = `WITH was AS MATERIALIZED (
	SELECT n.registry, n.revision, w.split = 0 AS apart, others.oldest,
		others.oldest IS NULL OR others.oldest = n.registry AND others.newest = n.registry AS settled
	FROM pawl.worker AS w
	JOIN pawl.namespace AS n ON n.id = $1
	CROSS JOIN LATERAL (
		SELECT min(o.split) AS oldest, max(o.split) AS newest
		FROM pawl.worker AS o
		WHERE o.namespace = $1 AND o.id <> $2 AND o.lost IS NULL AND o.split <> 0
	) AS others
	WHERE w.namespace = $1 AND w.id = $2
), beaten AS (
	UPDATE pawl.worker AS w
	SET beat = {now},
		split = CASE
			WHEN $3::bigint = 0 OR w.totals IS NULL OR was.apart AND was.oldest < $3 THEN w.split
			ELSE $3
		END
	FROM was
	WHERE w.namespace = $1 AND w.id = $2 AND w.lost IS NULL
	RETURNING w.id, was.apart AND w.split <> 0 AS joined
), changed AS (
	` + changeRegistry + ` AND EXISTS (SELECT FROM beaten WHERE joined)
)
SELECT 0 AS what, {now} AS now, NULL::uuid AS id, was.registry AS run, was.settled,
	beaten.joined AS shares, NULL::jsonb AS totals, '' AS queue,
	` + leaderFrom + `$4` + leaderElse + ` AS leader, was.revision
FROM beaten
CROSS JOIN was
UNION ALL
SELECT 1, {now}, j.id, j.run, false, false, NULL, '', 0, 0
FROM beaten
JOIN pawl.job AS j ON j.namespace = $1 AND j.worker = $2 AND j.cancel
UNION ALL
SELECT 2, {now}, NULL, o.id, false, o.split <> 0, o.totals, '', 0, 0
FROM beaten
CROSS JOIN pawl.worker AS o
WHERE o.namespace = $1
	AND o.lost IS NULL
	AND o.totals IS NOT NULL
	AND (o.split <> 0 OR o.id = $2)
UNION ALL
SELECT 3, {now}, NULL, held.runs, false, false, o.totals, held.queue, 0, 0
FROM beaten
CROSS JOIN pawl.worker AS o
CROSS JOIN LATERAL (
	SELECT j.queue, count(*) AS runs
	FROM pawl.job AS j
	WHERE j.namespace = $1 AND j.state = 3 AND j.worker = o.id
	GROUP BY j.queue
) AS held
WHERE o.namespace = $1
	AND o.lost IS NOT NULL
	AND NOT o.drained
	AND o.totals IS NOT NULL
ORDER BY what, run`

// beatStep renews a lease, and says whether the worker shares from now on.
func (r *Room) beatStep(b store.Beat, beaten *store.BeatReply, joined *bool) *pg.Statement {
	*beaten = store.BeatReply{}
	var what int
	var id pgtype.UUID
	var run, revision int64
	var leader job.WorkerID
	take := func() {
		switch what {
		case 0:
			beaten.Version, beaten.Revision, beaten.Leader = run, revision, leader == b.Worker
			r.Leader.found(leader)
		case 1:
			beaten.Cancels = append(beaten.Cancels, store.RunRef{ID: id.Bytes, Run: run})
		}
	}
	if !b.Splits {
		return &pg.Statement{Text: beatWorker, Args: []any{r.pg.Namespace, b.Worker, r.Leader.From(b.Worker)}, Each: func(scan pg.Scan) error {
			if err := scan(&what, &beaten.Now, &id, &run, &leader, &revision); err != nil {
				return err
			}
			take()
			return nil
		}}
	}
	crews := store.Crews{Worker: b.Worker}
	return &pg.Statement{Text: beatSplitting, Args: []any{r.pg.Namespace, b.Worker, b.Version, r.Leader.From(b.Worker)}, Each: func(scan pg.Scan) error {
		var settled, shares bool
		var totals []byte
		var queue string
		if err := scan(&what, &beaten.Now, &id, &run, &settled, &shares, &totals, &queue, &leader, &revision); err != nil {
			return err
		}
		switch what {
		case 0:
			beaten.Settled, *joined = settled, shares
		case 2:
			crews.Add(job.WorkerID(run), totals, shares)
		case 3:
			crews.AddHeld(totals, queue, int(run))
		}
		beaten.Crews = crews.Mine()
		take()
		return nil
	}}
}

// setServes replaces the queues and totals of a worker. Who has no total any more does
// not share: it would not store versions, and hold up everybody.
//
//   - worker_pkey finds the worker.
const setServes = `WITH was AS MATERIALIZED (
	SELECT id, split, totals
	FROM pawl.worker
	WHERE namespace = $1 AND id = $2 AND lost IS NULL
	FOR UPDATE
), served AS (
	UPDATE pawl.worker AS w
	SET queues = $3, totals = $4::jsonb, slots = $5::int[], split = CASE WHEN $4::jsonb IS NULL THEN 0 ELSE w.split END
	FROM was
	WHERE w.namespace = $1 AND w.id = was.id
)
` + changeRegistry + ` AND EXISTS (SELECT FROM was WHERE split <> 0 AND totals IS DISTINCT FROM $4::jsonb)`

// serveSteps replace what a worker serves, where its beat says so, in front of what
// the beat tells. It has a hit where the registry has changed.
func (r *Room) serveSteps(b *store.Beat) ([]*pg.Statement, error) {
	if b.Serves == nil {
		return nil, nil
	}
	queues, slots, totals, err := encodeServes(b.Serves)
	return []*pg.Statement{{Text: setServes, Args: []any{r.pg.Namespace, b.Worker, queues, totals, slots}}}, err
}

// Beat renews the worker's lease.
func (r *Room) Beat(ctx context.Context, b store.Beat) (store.BeatReply, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return store.BeatReply{}, err
	}
	defer r.pg.Leave()
	if reply, met := r.beatWith(ctx, &b); met {
		return reply, nil
	}
	serves, err := r.serveSteps(&b)
	if err != nil {
		return store.BeatReply{}, err
	}
	var beaten store.BeatReply
	joined := false
	err = r.pg.Retry(ctx, "beat", pg.Always, func(ctx context.Context, again bool) error {
		joined = joined || again && serves != nil
		steps := append(serves[:len(serves):len(serves)], r.beatStep(b, &beaten, &joined))
		if len(b.Begun) > 0 {
			steps = append(steps, r.BegunStep(b.Worker, b.Begun))
		}
		return r.pg.Send(ctx, r.pg.Reserved, pg.UpkeepLimits, steps...)
	})
	if err != nil {
		return store.BeatReply{}, err
	}
	if beaten.Now.IsZero() {
		r.Asked.Forget(b.Worker)
		return store.BeatReply{}, fmt.Errorf("worker %d: %w", b.Worker, job.ErrWorkerLost)
	}
	if joined || len(serves) > 0 && serves[0].Hits > 0 {
		r.hints.Notifier.Members()
	}
	beaten.Now = beaten.Now.UTC()
	return beaten, nil
}

// cancelledRuns are the worker's runs that were asked to cancel (job_cancel).
const cancelledRuns = "SELECT id, run FROM pawl.job WHERE namespace = $1 AND worker = $2 AND cancel ORDER BY id"

// Cancels lists the worker's runs that were asked to cancel.
func (r *Room) Cancels(ctx context.Context, w job.WorkerID) ([]store.RunRef, error) {
	var refs []store.RunRef
	err := r.pg.Read(ctx, func() []*pg.Statement {
		refs = nil
		return []*pg.Statement{{
			Text: cancelledRuns, Args: []any{r.pg.Namespace, w},
			Each: func(scan pg.Scan) error {
				var run store.RunRef
				err := scan(&run.ID, &run.Run)
				refs = append(refs, run)
				return err
			},
		}}
	})
	return refs, err
}
