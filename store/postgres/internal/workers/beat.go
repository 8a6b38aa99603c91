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
//   - worker_live, in its order.
const (
	leaderFrom = `coalesce((
		SELECT l.id
		FROM pawl.worker AS l
		WHERE l.namespace = $1 AND l.lost IS NULL AND l.id > 0 AND NOT l.remote AND l.id >= `
	leaderElse = ` ORDER BY l.id LIMIT 1), $2)`
)

// The version of the registry (namespace_pkey).
const registry = "(SELECT registry FROM pawl.namespace WHERE id = $1)"

// beatWorker renews a lease and tells the worker all it wants to know in one
// statement: that it lives, who leads, the revision of what is declared and set, the
// version of the registry, and its runs that were asked to cancel. It locks the beat,
// and nothing that others lock: who declares a worker lost removes its beat. One of the
// same worker that is under way is waited for, and is the one that is written then.
//
//   - worker_beat_pkey finds the beat, worker_pkey the worker, worker_live the leader, namespace_pkey the revision,
//     job_cancel the runs: only running jobs are asked.
var beatWorker = `WITH beaten AS (
	UPDATE pawl.worker_beat AS b
	SET at = {now}
	WHERE ` + renewable + `
		AND EXISTS (SELECT FROM pawl.worker AS w WHERE w.namespace = $1 AND w.id = $2 AND w.lost IS NULL)
	RETURNING b.worker
)
SELECT 0 AS what, {now} AS now, NULL::uuid AS id, ` + registry + ` AS run, ` + leaderFrom + `$3` + leaderElse + ` AS leader,
	` + settings.Revision + ` AS revision
FROM beaten
UNION ALL
SELECT 1, {now}, j.id, j.run, 0, 0
FROM beaten
JOIN pawl.job AS j ON j.namespace = $1 AND j.worker = $2 AND j.cancel`

// beatSplitting is the beat of a worker with totals, unless it knows who shares them
// (store/internal/crews): it also stores by which version the worker splits them, and tells the
// version there is now, whether it is settled (store.BeatReply), and who shares each of
// the worker's totals. All that it tells is of one snapshot, in which the worker does not
// share if it begins to by this beat (split, which was 0): the version that it makes may
// be that of others, too, who are not in the snapshot. The worker is locked before its beat.
//
//   - worker_pkey and worker_beat_pkey find the worker, worker_live those who share, job_cancel
//     the runs that were asked to cancel.
//   - worker_undrained and job_held tell what those hold that left; they are few: a rescue
//     drains them within seconds.
var beatSplitting = `WITH was AS MATERIALIZED (
	SELECT n.registry, n.revision, w.split = 0 AS apart, others.oldest,
		others.oldest IS NULL OR others.oldest = n.registry AND others.newest = n.registry AS settled
	FROM pawl.worker AS w
	JOIN pawl.namespace AS n ON n.id = $1
	CROSS JOIN LATERAL (
		SELECT min(o.split) AS oldest, max(o.split) AS newest
		FROM pawl.worker AS o
		WHERE o.namespace = $1 AND o.id > 0 AND o.id <> $2 AND o.lost IS NULL AND o.split <> 0
	) AS others
	WHERE w.namespace = $1 AND w.id = $2 AND w.lost IS NULL
	FOR NO KEY UPDATE OF w
), beaten AS (
	UPDATE pawl.worker_beat AS b
	SET at = {now}
	FROM was
	WHERE ` + renewable + `
	RETURNING b.worker
), stored AS (
	UPDATE pawl.worker AS w
	SET split = $3
	FROM was
	CROSS JOIN beaten
	WHERE w.namespace = $1
		AND w.id = $2
		AND w.split < $3::bigint
		AND w.totals IS NOT NULL
		AND NOT (was.apart AND coalesce(was.oldest, $3) < $3)
	RETURNING was.apart AS joined
), changed AS (
	` + changeRegistry + ` AND EXISTS (SELECT FROM stored WHERE joined)
)
SELECT 0 AS what, {now} AS now, NULL::uuid AS id, was.registry AS run, was.settled,
	EXISTS (SELECT FROM stored WHERE joined) AS shares, NULL::jsonb AS totals, '' AS queue,
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
	AND o.id > 0
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
	AND o.split <> 0
ORDER BY what, run`

// beating is one call of Beat.
type beating struct {
	reply    store.BeatReply
	registry int64 // its version
	joined   bool  // the worker shares from now on
}

// light renews a lease and tells who leads and what is to be cancelled.
func (r *Room) light(b *store.Beat, to *beating) *pg.Statement {
	to.reply = store.BeatReply{}
	var what int
	var id pgtype.UUID
	var run, revision int64
	var leader job.WorkerID
	return &pg.Statement{Text: beatWorker, Args: []any{r.pg.Namespace, b.Worker, r.Leader.From(b.Worker)}, Each: func(scan pg.Scan) error {
		if err := scan(&what, &to.reply.Now, &id, &run, &leader, &revision); err != nil {
			return err
		}
		if what == 1 {
			to.reply.Cancels = append(to.reply.Cancels, store.RunRef{ID: id.Bytes, Run: run})
			return nil
		}
		to.registry, to.reply.Revision, to.reply.Leader = run, revision, leader == b.Worker
		r.Leader.found(leader)
		return nil
	}}
}

// splitting renews a lease and tells who shares the worker's totals.
func (r *Room) splitting(b *store.Beat, to *beating) *pg.Statement {
	to.reply = store.BeatReply{}
	var what int
	var id pgtype.UUID
	var run, revision int64
	var leader job.WorkerID
	crews := store.Crews{Worker: b.Worker}
	return &pg.Statement{Text: beatSplitting, Args: []any{r.pg.Namespace, b.Worker, b.Version, r.Leader.From(b.Worker)}, Each: func(scan pg.Scan) error {
		var settled, shares bool
		var totals []byte
		var queue string
		if err := scan(&what, &to.reply.Now, &id, &run, &settled, &shares, &totals, &queue, &leader, &revision); err != nil {
			return err
		}
		switch what {
		case 0:
			to.registry, to.joined = run, shares
			to.reply.Version, to.reply.Settled, to.reply.Revision, to.reply.Leader = run, settled, revision, leader == b.Worker
			r.Leader.found(leader)
		case 1:
			to.reply.Cancels = append(to.reply.Cancels, store.RunRef{ID: id.Bytes, Run: run})
		case 2:
			crews.Add(job.WorkerID(run), totals, shares)
		case 3:
			crews.AddHeld(totals, queue, int(run))
		}
		to.reply.Crews = crews.Mine()
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

// Beat renews the worker's lease. One that splits totals, and knows who shares them in the
// version of the registry that it splits by, only asks whether that is still the version.
func (r *Room) Beat(ctx context.Context, b store.Beat) (store.BeatReply, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return store.BeatReply{}, err
	}
	defer r.pg.Leave()
	if !b.Splits || b.Serves != nil {
		r.crews.Forget(b.Worker)
	}
	crews, known := r.crews.Of(b.Worker, b.Version)
	if !b.Splits || known {
		reply, version, met := r.beatWith(ctx, &b)
		if !met {
			var err error
			if reply, version, err = r.beatAlone(ctx, &b, r.light); err != nil {
				return store.BeatReply{}, err
			}
		}
		if !b.Splits {
			return reply, nil
		}
		if version == b.Version {
			reply.Version, reply.Settled, reply.Crews = version, true, crews
			return reply, nil
		}
		b.Begun, b.Serves = nil, nil // that is stored
	}
	reply, _, err := r.beatAlone(ctx, &b, r.splitting)
	if err == nil {
		r.crews.Note(&b, &reply)
	}
	return reply, err
}

// beatAlone beats by one of the statements, and tells the version of the registry.
func (r *Room) beatAlone(ctx context.Context, b *store.Beat, by func(*store.Beat, *beating) *pg.Statement) (store.BeatReply, int64, error) {
	serves, err := r.serveSteps(b)
	if err != nil {
		return store.BeatReply{}, 0, err
	}
	var beaten beating
	joined, tried := false, false
	err = r.pg.Retry(ctx, "beat", pg.Always, func(ctx context.Context, again bool) error {
		joined = joined || beaten.joined || again && serves != nil
		var along []*ride
		if !tried { // a beat that has failed is in no state to take others along
			along = r.Rides.take()
		}
		tried = true
		return r.sendWith(ctx, along, func() []*pg.Statement {
			steps := append(serves[:len(serves):len(serves)], by(b, &beaten))
			if len(b.Begun) > 0 {
				steps = append(steps, r.BegunStep(b.Worker, b.Begun))
			}
			return steps
		})
	})
	if err != nil {
		return store.BeatReply{}, 0, err
	}
	if beaten.reply.Now.IsZero() {
		r.Asked.Forget(b.Worker)
		r.crews.Forget(b.Worker)
		return store.BeatReply{}, 0, fmt.Errorf("worker %d: %w", b.Worker, job.ErrWorkerLost)
	}
	if joined || beaten.joined || len(serves) > 0 && serves[0].Hits > 0 {
		r.hints.Notifier.Members()
	}
	beaten.reply.Now = beaten.reply.Now.UTC()
	return beaten.reply, beaten.registry, nil
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
