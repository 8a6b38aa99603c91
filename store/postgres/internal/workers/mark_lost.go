package workers

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// mostNeighbours is how many workers of its machine one is told of, the newest.
const mostNeighbours = 100

// latePartOf are the next live workers behind a place in the tour.
//
//   - worker_live, in its order.
func latePartOf(namespace, behind string) string {
	return strings.NewReplacer("{namespace}", namespace, "{behind}", behind, "{limit}", fmt.Sprint(latePart)).Replace(`
		(
			SELECT w.id, w.lost_after, w.beat, false AS again
			FROM pawl.worker AS w
			WHERE w.namespace = {namespace} AND w.lost IS NULL AND w.id > 0 AND w.id > {behind}
			ORDER BY w.id
			LIMIT {limit}
		)
		UNION ALL
		(
			SELECT w.id, w.lost_after, w.beat, true
			FROM pawl.worker AS w
			WHERE w.namespace = {namespace} AND w.lost IS NULL AND w.id > 0 AND w.id <= {behind}
			ORDER BY w.id
			LIMIT {limit}
		)
		LIMIT {limit}
	`)
}

// losing is a part of statements: it declares those lost that they have found, with their
// beats as they have seen them, and removes the beats. One whose worker or beat is locked
// is claiming or beating at this moment, and one that has beaten since is not late: they
// are passed over. One without a beat was never ours to see.
//
//   - Beats are found by their places, worker_pkey finds the workers.
const losing = `silent AS MATERIALIZED (
	SELECT b.worker, b.ctid AS place
	FROM found AS f
	JOIN pawl.worker_beat AS b ON b.ctid = f.place
	WHERE b.worker = f.id AND b.at = f.at
	FOR UPDATE OF b SKIP LOCKED
), late AS MATERIALIZED (
	SELECT w.id, f.at
	FROM found AS f
	JOIN pawl.worker AS w ON w.namespace = $1 AND w.id = f.id
	WHERE w.lost IS NULL AND (f.place IS NULL OR EXISTS (SELECT FROM silent AS s WHERE s.worker = f.id))
	ORDER BY w.id
	FOR UPDATE OF w SKIP LOCKED
), lost AS (
	UPDATE pawl.worker AS w
	SET lost = {now}, beat = late.at
	FROM late
	WHERE w.namespace = $1 AND w.id = late.id
	RETURNING w.id, w.split
), muted AS (
	DELETE FROM pawl.worker_beat AS b
	USING silent AS s
	WHERE b.ctid = s.place AND EXISTS (SELECT FROM late AS l WHERE l.id = s.worker)
), changed AS (
	` + changeRegistry + ` AND EXISTS (SELECT FROM lost WHERE split <> 0)
	RETURNING id
)`

// loseWorkers declares those lost that missed their beats for a time throughout
// which the declarer has beaten. It looks at the next few behind a place ($6). The
// declarer never declares itself, and must be alive to declare others.
//
// The clock may have been set since they beat. Set forward, everybody looks
// late, the declarer too, who has just beaten: nobody is lost then, and the
// next beats count. One who has beaten since and does not know it yet cannot
// tell. Set back, the beats of the dead lie ahead, and count from now. Set back
// after the statement began and before it looked, who has beaten since seems to have
// done so long ago: nobody is late who is not so by the clock as it is read, either.
//
//   - worker_live gives the workers, worker_beat_pkey their beats, worker_pkey the declarer, worker_machine its neighbours.
//   - code_version_live and worker_version find versions without a live worker; Suspects has its own.
var loseWorkers = `WITH me AS MATERIALIZED (
	SELECT w.id, b.at = $3 AND b.at + w.lost_after / 2 * interval '1 microsecond' >= {now} AS fresh
	FROM pawl.worker AS w
	CROSS JOIN LATERAL (` + beatOf("$1", "w.id") + `
	) AS b
	WHERE w.namespace = $1 AND w.id = $2 AND w.lost IS NULL
), part AS MATERIALIZED (` + latePartOf("$1", "$6::bigint") + `), heard AS MATERIALIZED (
	SELECT p.id, p.lost_after, b.place, coalesce(b.at, p.beat) AS at
	FROM me
	CROSS JOIN part AS p
	LEFT JOIN LATERAL (` + beatOf("$1", "p.id") + `
	) AS b ON true
), found AS MATERIALIZED (
	SELECT h.id, h.place, h.at
	FROM me
	CROSS JOIN heard AS h
	WHERE me.fresh
		AND h.id <> $2
		AND h.at + h.lost_after * interval '1 microsecond' < least({now}, {instant})
		AND h.lost_after <= $4
), ` + losing + `, ahead AS MATERIALIZED (
	SELECT b.ctid AS place
	FROM heard AS h
	JOIN pawl.worker_beat AS b ON b.ctid = h.place
	WHERE b.at = h.at AND h.at > {now} + interval '1 second'
	FOR UPDATE OF b SKIP LOCKED
), counted AS (
	UPDATE pawl.worker_beat AS b
	SET at = {now}
	FROM ahead
	WHERE b.ctid = ahead.place
)
SELECT (SELECT count(*) FROM lost), (SELECT count(*) FROM changed) > 0, EXISTS (` + suspectsOf("$1", "$7::bigint") + `),
	EXISTS (SELECT FROM lost) OR EXISTS (` + settings.Orphaned + `),
	id, '' AS label, 0 AS process, '' AS start,
	coalesce((SELECT p.id FROM part AS p ORDER BY p.again DESC, p.id DESC LIMIT 1), 0) AS upto,
	(SELECT count(*) FROM part), ` + gapsEnd("$1", "$7::bigint") + `
FROM me
UNION ALL
(
	SELECT 0, false, false, false, w.id, w.label, w.process, w.start, 0, 0, 0
	FROM me
	CROSS JOIN pawl.worker AS w
	WHERE w.namespace = $1
		AND w.machine = $5
		AND w.machine <> ''
		AND w.lost IS NULL
		AND w.id <> $2
	ORDER BY w.id DESC
	LIMIT ` + fmt.Sprint(mostNeighbours) + `
)`

// MarkLost declares workers lost whose last beat is older than their own limit. It looks
// at a part of the registry.
func (r *Room) MarkLost(ctx context.Context, l store.MarkLostRequest) (store.MarkLostReply, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return store.MarkLostReply{}, err
	}
	defer r.pg.Leave()
	late, gaps := r.late.from(l.By), r.Gaps.From()
	if met, ok := r.meets.late.Do(ctx, lateAsk{r.pg.Namespace, late, gaps, l}); ok {
		r.looked(&met)
		return met.MarkLostReply, nil
	}
	var lost lateAnswer
	alive, changed, ends := false, false, false
	args := []any{r.pg.Namespace, l.By, l.Beat, l.Steady.Microseconds(), pg.Legible(l.Machine), late, gaps}
	err := r.pg.Retry(ctx, "lose", pg.Always, func(ctx context.Context, _ bool) error {
		lost = lateAnswer{}
		return r.pg.Send(ctx, r.pg.Reserved, pg.SharedLimits, &pg.Statement{Text: loseWorkers, Args: args, Each: func(scan pg.Scan) error {
			n := store.Neighbour{Machine: l.Machine}
			var workers, looked int
			var different, orphans, orphaned bool
			var upto, end job.WorkerID
			if err := scan(&workers, &different, &orphans, &orphaned, &n.ID, &n.Label, &n.Process, &n.Start, &upto, &looked, &end); err != nil {
				return err
			}
			if n.ID == l.By {
				alive, changed, ends = true, changed || different, ends || orphaned
				lost.Workers, lost.Orphans, lost.More = workers, orphans, workers > 0 && looked == latePart
				lost.late, lost.gaps = upto, end
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
	r.looked(&lost)
	if ends {
		r.endVersions(ctx)
	}
	return lost.MarkLostReply, nil
}

// looked moves the tours on.
func (r *Room) looked(a *lateAnswer) {
	r.late.reached(a.late)
	if !a.Orphans {
		r.Gaps.Reached(a.gaps)
	}
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
//   - worker_pkey and worker_beat_pkey find the rows.
var deadWorkers = `WITH found AS MATERIALIZED (
	SELECT w.id, b.place, coalesce(b.at, w.beat) AS at
	FROM (SELECT DISTINCT u.id FROM unnest($2::bigint[]) AS u (id)) AS u
	JOIN pawl.worker AS w ON w.namespace = $1 AND w.id = u.id
	LEFT JOIN LATERAL (` + beatOf("$1", "w.id") + `
	) AS b ON true
	WHERE w.lost IS NULL
), ` + losing + `
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

// suspectsOf are workers that may hold jobs and are no more: those declared lost
// and not yet found empty, and numbers between registered ones that some job
// names. Of the latter, which only somebody else's hand can bring about, a look goes
// through the next few gaps behind a place. The jobs of registered live workers, which
// are nearly all, are never visited, dead index entries included. That is why rows of
// workers that left stay for a day: without them, the entries of all the jobs they ever
// ran would lie in a gap until vacuum can remove them.
//
//   - worker_undrained gives the workers, worker_pkey the gaps, job_held a job in each gap.
func suspectsOf(namespace, behind string) string {
	return gapsOf(namespace, behind, `SELECT id
FROM pawl.worker
WHERE namespace = {namespace} AND lost IS NOT NULL AND NOT drained
UNION ALL
SELECT j.worker
FROM (
	SELECT g.id AS low, lead(g.id) OVER (ORDER BY g.id) AS high, count(*) OVER () AS n
	FROM (
		SELECT {behind} AS id
		UNION ALL
		SELECT k.id
		FROM ({known}) AS k
	) AS g
) AS gap
CROSS JOIN LATERAL (
	SELECT worker
	FROM pawl.job
	WHERE namespace = {namespace}
		AND state = 3
		AND worker > gap.low
		AND worker < coalesce(gap.high, 9223372036854775807)
	LIMIT 1
) AS j
WHERE gap.high IS NOT NULL OR gap.n <= {limit}`)
}

// gapsEnd is where the next look at gaps goes on: at the first of them, when this one has
// come to the last.
//
//   - worker_pkey, in its order.
func gapsEnd(namespace, behind string) string {
	return gapsOf(namespace, behind, `(
	SELECT CASE WHEN count(*) = {limit} THEN max(k.id) ELSE 0 END
	FROM ({known}) AS k
)`)
}

func gapsOf(namespace, behind, text string) string {
	return strings.NewReplacer("{namespace}", namespace, "{behind}", behind, "{limit}", fmt.Sprint(gapPart), "{known}", strings.NewReplacer(
		"{namespace}", namespace, "{behind}", behind, "{limit}", fmt.Sprint(gapPart)).Replace(`
			SELECT r.id
			FROM pawl.worker AS r
			WHERE r.namespace = {namespace} AND r.id > {behind}
			ORDER BY r.id
			LIMIT {limit}
		`)).Replace(text)
}

// Suspects of a namespace ($1), behind a place ($2), and where the look ends.
var (
	Suspects     = suspectsOf("$1", "$2::bigint")
	SuspectsEnd  = gapsEnd("$1", "$2::bigint")
	SuspectsFrom = suspectsOf("$1", "$4::bigint") // in statements with other parameters
)
