package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
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
const loseWorkers = `WITH me AS MATERIALIZED (
	SELECT id, beat = $3 AND beat + lost_after / 2 * interval '1 microsecond' >= {now} AS fresh FROM pawl.worker WHERE namespace = $1 AND id = $2 AND lost IS NULL
), late AS MATERIALIZED (
	SELECT w.id FROM me CROSS JOIN pawl.worker AS w
	WHERE me.fresh AND w.namespace = $1 AND w.id <> $2 AND w.lost IS NULL AND w.beat + w.lost_after * interval '1 microsecond' < {now}
		AND w.lost_after <= $4
	ORDER BY w.id FOR UPDATE OF w SKIP LOCKED
), lost AS (
	UPDATE pawl.worker AS w SET lost = {now} FROM late WHERE w.namespace = $1 AND w.id = late.id RETURNING w.id, w.split
), changed AS (
	` + changeRegistry + ` AND EXISTS (SELECT FROM lost WHERE split <> 0) RETURNING id
), ahead AS MATERIALIZED (
	SELECT w.id FROM me CROSS JOIN pawl.worker AS w
	WHERE w.namespace = $1 AND w.lost IS NULL AND w.beat > {now} + interval '1 second' ORDER BY w.id FOR UPDATE OF w SKIP LOCKED
), counted AS (
	UPDATE pawl.worker AS w SET beat = {now} FROM ahead WHERE w.namespace = $1 AND w.id = ahead.id
)
SELECT (SELECT count(*) FROM lost), (SELECT count(*) FROM changed) > 0, EXISTS (` + suspects + `), id, '' AS label, 0 AS process, '' AS start FROM me
UNION ALL
SELECT 0, false, false, w.id, w.label, w.process, w.start FROM me CROSS JOIN pawl.worker AS w
WHERE w.namespace = $1 AND w.id <> $2 AND w.lost IS NULL AND w.machine = $5 AND $5 <> ''`

// MarkLost declares workers lost whose last beat is older than their own limit.
func (s *Store) MarkLost(ctx context.Context, l store.MarkLostRequest) (store.MarkLostReply, error) {
	if err := s.enter(ctx); err != nil {
		return store.MarkLostReply{}, err
	}
	defer s.leave()
	var lost store.MarkLostReply
	alive, changed := false, false
	args := []any{s.namespace, l.By, l.Beat, l.Steady.Microseconds(), legible(l.Machine)}
	err := s.retry(ctx, "lose", always, func(ctx context.Context, _ bool) error {
		lost = store.MarkLostReply{}
		return s.send(ctx, s.reserved, sharedLimits, &statement{text: loseWorkers, args: args, each: func(scan scan) error {
			n := store.Neighbour{Machine: l.Machine}
			var workers int
			var different, orphans bool
			if err := scan(&workers, &different, &orphans, &n.ID, &n.Label, &n.Process, &n.Start); err != nil {
				return err
			}
			if n.ID == l.By {
				alive, changed = true, changed || different
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
		s.notifier.members()
	}
	if !alive {
		return store.MarkLostReply{}, fmt.Errorf("worker %d: %w", l.By, job.ErrWorkerLost)
	}
	return lost, nil
}

// deadWorkers declares those lost that are proven dead. The last statement of a
// dead process may still be under way at the server, with its row locked: the
// next round finds it free.
const deadWorkers = `WITH dead AS MATERIALIZED (
	SELECT id FROM pawl.worker WHERE namespace = $1 AND id = ANY ($2::bigint[]) AND lost IS NULL ORDER BY id FOR UPDATE SKIP LOCKED
), lost AS (
	UPDATE pawl.worker AS w SET lost = {now} FROM dead WHERE w.namespace = $1 AND w.id = dead.id RETURNING w.id, w.split
), changed AS (
	` + changeRegistry + ` AND EXISTS (SELECT FROM lost WHERE split <> 0) RETURNING id
)
SELECT (SELECT count(*) FROM lost), (SELECT count(*) FROM changed) > 0`

// MarkDead declares workers lost that are proven dead.
func (s *Store) MarkDead(ctx context.Context, dead []job.WorkerID) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	ids := make([]int64, len(dead))
	for i, w := range dead {
		ids[i] = int64(w)
	}
	lost, changed := 0, false
	err := s.retry(ctx, "mark dead", always, func(ctx context.Context, _ bool) error {
		return s.send(ctx, s.reserved, upkeepLimits, &statement{text: deadWorkers, args: []any{s.namespace, ids}, each: func(scan scan) error {
			var different bool
			err := scan(&lost, &different)
			changed = changed || different
			return err
		}})
	})
	if err != nil {
		return 0, err
	}
	if changed {
		s.notifier.members()
	}
	return lost, nil
}

// suspects are workers that may hold jobs and are no more: those declared lost
// and not yet found empty, and numbers between registered ones that some job
// names. The jobs of registered live workers, which are nearly all, are never
// visited, dead index entries included. That is why rows of workers that left
// stay for a day: without them, the entries of all the jobs they ever ran would
// lie in a gap until vacuum can remove them.
const suspects = `SELECT id FROM pawl.worker WHERE namespace = $1 AND lost IS NOT NULL AND NOT drained
UNION ALL
SELECT j.worker FROM (
	SELECT w.id AS low, lead(w.id) OVER (ORDER BY w.id) AS high FROM (SELECT id FROM pawl.worker WHERE namespace = $1 UNION ALL SELECT 0) AS w
) AS gap CROSS JOIN LATERAL (
	SELECT worker FROM pawl.job WHERE namespace = $1 AND state = 3 AND worker > gap.low AND worker < coalesce(gap.high, 9223372036854775807) LIMIT 1
) AS j`

// orphanage is how far one rescue came: to this claim of this worker.
type orphanage struct {
	worker job.WorkerID
	claim  pgtype.Int8
}

const (
	// job_held finds the jobs of a suspect. No lock is waited for, so their order
	// is that of the index.
	orphans = "SELECT orphan.* FROM (SELECT id FROM (" + suspects + `) AS suspect (id) WHERE id >= $3 ORDER BY id) AS suspect
		CROSS JOIN LATERAL (SELECT ` + subjectColumns + mortalColumns + `, claim FROM pawl.job
			WHERE namespace = $1 AND state = 3 AND worker = suspect.id {from}
			ORDER BY claim LIMIT $2 FOR UPDATE SKIP LOCKED) AS orphan
		LIMIT $2`
	// A transaction that goes on where another ended does not pass what that took
	// back: while a snapshot is held, the dead entries stay.
	fromClaim = "AND claim >= CASE WHEN suspect.id = $3 THEN $4 ELSE 0 END"
	// A lost worker cannot claim, so one that holds nothing never will.
	markDrained = `UPDATE pawl.worker AS w SET drained = true WHERE namespace = $1 AND lost IS NOT NULL AND NOT drained
		AND (SELECT 1 FROM pawl.job WHERE job.namespace = $1 AND job.state = 3 AND job.worker = w.id LIMIT 1) IS NULL`
)

var (
	lockOrphans     = strings.Replace(orphans, "{from}", "", 1)
	lockMoreOrphans = strings.Replace(orphans, "{from}", fromClaim, 1)
)

// Rescue ends up to limit runs whose worker is absent or lost. In a healthy
// cluster it is one read.
func (s *Store) Rescue(ctx context.Context, limit int) (store.RescueReply, error) {
	if err := s.enter(ctx); err != nil {
		return store.RescueReply{}, err
	}
	defer s.leave()
	some := false
	err := s.retry(ctx, "rescue", reading, func(ctx context.Context, _ bool) error {
		return s.send(ctx, s.reserved, nil, &statement{text: "SELECT EXISTS (" + suspects + ")", args: []any{s.namespace}, each: func(scan scan) error { return scan(&some) }})
	})
	if err != nil || !some {
		return store.RescueReply{}, err
	}
	var all store.RescueReply
	var at orphanage
	for all.Total() < limit {
		n := min(rescuedAtOnce, limit-all.Total())
		var rescued store.RescueReply
		var told hintSet
		var reached orphanage
		deaths := all.Deaths
		err = s.retry(ctx, "rescue", always, func(ctx context.Context, _ bool) error {
			err := s.transact(ctx, s.reserved, upkeepLimits, func(t *transaction) (err error) {
				var woken hintSet
				reached = at
				rescued, woken, err = s.rescue(ctx, t, n, &reached)
				told.join(woken) // also those of a try whose answer is lost
				return err
			})
			deaths = namedBy(err, deaths, rescued.Deaths)
			return err
		})
		if err != nil {
			if all.Total() > 0 {
				return all, nil // the next round goes on
			}
			return store.RescueReply{}, err
		}
		s.tell(told)
		at = reached
		all.Waiting, all.Dead, all.Cancelled = all.Waiting+rescued.Waiting, all.Dead+rescued.Dead, all.Cancelled+rescued.Cancelled
		all.Deaths = deaths
		if rescued.Total() < n {
			break
		}
	}
	return all, nil
}

// namedBy adds the deaths of one try: also of one whose answer is lost, because
// the next try no longer finds them.
func namedBy(err error, deaths, more []store.Death) []store.Death {
	if err == nil || faultOf(err).unknown {
		return store.AddDeaths(deaths, more...)
	}
	return deaths
}

// rescuedAtOnce is how many runs one transaction takes back. Their failures come
// along, up to 400 KB each, over a link that may be slow.
const rescuedAtOnce = 50

// rescue takes back what comes behind a place, and moves that on.
func (s *Store) rescue(ctx context.Context, session session, limit int, at *orphanage) (rescued store.RescueReply, told hintSet, err error) {
	text, args := lockOrphans, []any{s.namespace, limit, at.worker}
	if at.claim.Valid {
		text, args = lockMoreOrphans, append(args, at.claim)
	}
	var found []subject
	lock := &statement{text: text, args: args, each: func(scan scan) error {
		var f subject
		err := f.read(scan, &f.mortal.kind, &f.mortal.maxAttempts, &at.claim)
		found, at.worker = append(found, f), f.worker
		return err
	}}
	var now time.Time
	steps := []*statement{{text: "SELECT {now}", each: func(scan scan) error { return scan(&now) }}, lock}
	drained := &statement{text: markDrained, args: []any{s.namespace}}
	if !at.claim.Valid { // once for all that follow: it passes the dead entries of every suspect
		steps = append([]*statement{drained}, steps...)
	}
	if err := session.run(ctx, steps...); err != nil {
		return rescued, nil, err
	}
	var moves []move
	for _, f := range found {
		j := job.Job{ID: f.id, Run: f.run, Worker: f.worker, Used: f.used, Lost: f.lost, CancelAsked: f.cancel}
		m, err := decide(f, job.Rescue(&j, f.begun, s.settings.MaxLost, s.keep(f.queue)), true, now)
		if err != nil {
			return rescued, nil, err
		}
		moves = append(moves, m)
		switch m.end.To {
		case job.Dead:
			rescued.Dead++
			rescued.Deaths = store.AddDeaths(rescued.Deaths, f.death(m.end.Reason))
		case job.Cancelled:
			rescued.Cancelled++
		default:
			rescued.Waiting++
		}
	}
	if told, err = s.apply(ctx, session, moves, now); err != nil || len(found) == limit {
		return rescued, told, err
	}
	return rescued, told, session.run(ctx, drained)
}
