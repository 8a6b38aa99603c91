package workers

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// loseWorkers declares those lost that missed their beats for a time throughout
// which the declarer has beaten. One whose row is locked is claiming or beating
// at this moment. The declarer never declares itself, and must be alive to
// declare others.
//
// The clock may have been set since they beat. Set forward, everybody looks
// late, the declarer too, who has just beaten: nobody is lost then, and the
// next beats count. One who has beaten since and does not know it yet cannot
// tell. Set back, the beats of the dead lie ahead, and count from now.
//
//   - worker_pkey finds the rows; code_version_live and worker_version find versions
//     without a live worker.
const loseWorkers = `WITH me AS MATERIALIZED (
	SELECT id, beat = $3 AND beat + lost_after / 2 * interval '1 microsecond' >= {now} AS fresh
	FROM pawl.worker
	WHERE namespace = $1 AND id = $2 AND lost IS NULL
), late AS MATERIALIZED (
	SELECT w.id
	FROM me
	CROSS JOIN pawl.worker AS w
	WHERE me.fresh
		AND w.namespace = $1
		AND w.id <> $2
		AND w.lost IS NULL
		AND w.beat + w.lost_after * interval '1 microsecond' < {now}
		AND w.lost_after <= $4
	ORDER BY w.id
	FOR UPDATE OF w SKIP LOCKED
), lost AS (
	UPDATE pawl.worker AS w
	SET lost = {now}
	FROM late
	WHERE w.namespace = $1 AND w.id = late.id
	RETURNING w.id, w.split
), changed AS (
	` + changeRegistry + ` AND EXISTS (SELECT FROM lost WHERE split <> 0)
	RETURNING id
), ahead AS MATERIALIZED (
	SELECT w.id
	FROM me
	CROSS JOIN pawl.worker AS w
	WHERE w.namespace = $1
		AND w.lost IS NULL
		AND w.beat > {now} + interval '1 second'
	ORDER BY w.id
	FOR UPDATE OF w SKIP LOCKED
), counted AS (
	UPDATE pawl.worker AS w
	SET beat = {now}
	FROM ahead
	WHERE w.namespace = $1 AND w.id = ahead.id
)
SELECT (SELECT count(*) FROM lost), (SELECT count(*) FROM changed) > 0, EXISTS (` + Suspects + `),
	EXISTS (SELECT FROM lost) OR EXISTS (` + settings.Orphaned + `),
	id, '' AS label, 0 AS process, '' AS start
FROM me
UNION ALL
SELECT 0, false, false, false, w.id, w.label, w.process, w.start
FROM me
CROSS JOIN pawl.worker AS w
WHERE w.namespace = $1
	AND w.id <> $2
	AND w.lost IS NULL
	AND w.machine = $5
	AND $5 <> ''`

// MarkLost declares workers lost whose last beat is older than their own limit.
func (r *Room) MarkLost(ctx context.Context, l store.MarkLostRequest) (store.MarkLostReply, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return store.MarkLostReply{}, err
	}
	defer r.pg.Leave()
	if met, ok := r.meets.late.Do(ctx, lateAsk{r.pg.Namespace, l}); ok {
		return met, nil
	}
	var lost store.MarkLostReply
	alive, changed, ends := false, false, false
	args := []any{r.pg.Namespace, l.By, l.Beat, l.Steady.Microseconds(), pg.Legible(l.Machine)}
	err := r.pg.Retry(ctx, "lose", pg.Always, func(ctx context.Context, _ bool) error {
		lost = store.MarkLostReply{}
		return r.pg.Send(ctx, r.pg.Reserved, pg.SharedLimits, &pg.Statement{Text: loseWorkers, Args: args, Each: func(scan pg.Scan) error {
			n := store.Neighbour{Machine: l.Machine}
			var workers int
			var different, orphans, orphaned bool
			if err := scan(&workers, &different, &orphans, &orphaned, &n.ID, &n.Label, &n.Process, &n.Start); err != nil {
				return err
			}
			if n.ID == l.By {
				alive, changed, ends = true, changed || different, ends || orphaned
				lost.Workers += workers
				lost.Orphans = orphans
			} else {
				lost.Neighbours = append(lost.Neighbours, n)
			}
			return nil
		}})
	})
	if err != nil {
		return store.MarkLostReply{}, err
	}
	if changed {
		r.hints.Notifier.Members()
	}
	if !alive {
		return store.MarkLostReply{}, fmt.Errorf("worker %d: %w", l.By, job.ErrWorkerLost)
	}
	if ends {
		r.endVersions(ctx)
	}
	return lost, nil
}

// endVersions ends what was declared only by workers that are lost. It is a
// transaction of its own, so that the rounds in which nobody is lost, which are nearly
// all, do not lock what is declared; should it fail, the next round sees it
// (settings.Orphaned).
func (r *Room) endVersions(ctx context.Context) {
	end := r.settings.EndSteps()
	err := r.pg.Retry(ctx, "end versions", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Reserved, pg.UpkeepLimits, end...)
	})
	if err != nil {
		r.pg.Logger.Debug("versions without a worker were not ended; the next round does it", "error", err)
		return
	}
	r.hints.Notifier.Settings()
}

// deadWorkers declares those lost that are proven dead. The last statement of a
// dead process may still be under way at the server, with its row locked: the
// next round finds it free.
//
//   - worker_pkey finds the rows.
const deadWorkers = `WITH dead AS MATERIALIZED (
	SELECT id
	FROM pawl.worker
	WHERE namespace = $1 AND id = ANY ($2::bigint[]) AND lost IS NULL
	ORDER BY id
	FOR UPDATE SKIP LOCKED
), lost AS (
	UPDATE pawl.worker AS w
	SET lost = {now}
	FROM dead
	WHERE w.namespace = $1 AND w.id = dead.id
	RETURNING w.id, w.split
), changed AS (
	` + changeRegistry + ` AND EXISTS (SELECT FROM lost WHERE split <> 0)
	RETURNING id
)
SELECT (SELECT count(*) FROM lost), (SELECT count(*) FROM changed) > 0`

// MarkDead declares workers lost that are proven dead.
func (r *Room) MarkDead(ctx context.Context, dead []job.WorkerID) (int, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return 0, err
	}
	defer r.pg.Leave()
	ids := make([]int64, len(dead))
	for i, w := range dead {
		ids[i] = int64(w)
	}
	lost, changed, ended := 0, false, false
	err := r.pg.Retry(ctx, "mark dead", pg.Always, func(ctx context.Context, again bool) error {
		end := r.settings.EndSteps()
		err := r.pg.Send(ctx, r.pg.Reserved, pg.UpkeepLimits, append([]*pg.Statement{
			{Text: deadWorkers, Args: []any{r.pg.Namespace, ids}, Each: func(scan pg.Scan) error {
				var different bool
				err := scan(&lost, &different)
				changed = changed || different
				return err
			}},
		}, end...)...)
		ended = ended || again || end[1].Hits > 0
		return err
	})
	if err != nil {
		return 0, err
	}
	if changed {
		r.hints.Notifier.Members()
	}
	if ended {
		r.hints.Notifier.Settings()
	}
	return lost, nil
}

// Suspects are workers that may hold jobs and are no more: those declared lost
// and not yet found empty, and numbers between registered ones that some job
// names. The jobs of registered live workers, which are nearly all, are never
// visited, dead index entries included. That is why rows of workers that left
// stay for a day: without them, the entries of all the jobs they ever ran would
// lie in a gap until vacuum can remove them.
//
//   - worker_pkey gives the workers and the gaps, job_held a job in each gap.
const Suspects = `SELECT id
FROM pawl.worker
WHERE namespace = $1 AND lost IS NOT NULL AND NOT drained
UNION ALL
SELECT j.worker
FROM (
	SELECT w.id AS low, lead(w.id) OVER (ORDER BY w.id) AS high
	FROM (SELECT id FROM pawl.worker WHERE namespace = $1 UNION ALL SELECT 0) AS w
) AS gap
CROSS JOIN LATERAL (
	SELECT worker
	FROM pawl.job
	WHERE namespace = $1
		AND state = 3
		AND worker > gap.low
		AND worker < coalesce(gap.high, 9223372036854775807)
	LIMIT 1
) AS j`
