package jobs

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// RescueMark is how far one rescue came: to this claim of this worker.
type RescueMark struct {
	Worker job.WorkerID
	Claim  pgtype.Int8
	Gaps   job.WorkerID // where its look at numbers that are not registered began
}

// haveSuspects asks whether there may be something to rescue, and where the look ended.
var haveSuspects = "SELECT EXISTS (" + workers.Suspects + "), " + workers.SuspectsEnd

// orphans locks the jobs of suspects.
//
//   - worker_undrained and worker_pkey find the suspects (workers.Suspects), job_held their jobs. No lock is
//     waited for, so their order is that of the index.
var orphans = `SELECT orphan.*
FROM (
	SELECT id
	FROM (` + workers.SuspectsFrom + `) AS suspect (id)
	WHERE id >= $3
	ORDER BY id
) AS suspect
CROSS JOIN LATERAL (
	SELECT ` + subjectColumns + `, claim
	FROM pawl.job
	WHERE namespace = $1 AND state = 3 AND worker = suspect.id {from}
	ORDER BY claim
	LIMIT $2
	FOR UPDATE SKIP LOCKED
) AS orphan
LIMIT $2`

// fromClaim makes a transaction that goes on where another ended not pass what
// that took back: while a snapshot is held, the dead entries stay.
const fromClaim = "AND claim >= CASE WHEN suspect.id = $3 THEN $5 ELSE 0 END"

// markDrained marks lost workers that hold nothing: they cannot claim, so they
// never will.
//
//   - worker_undrained finds them, job_held tells.
const markDrained = `UPDATE pawl.worker AS w
SET drained = true
WHERE namespace = $1 AND lost IS NOT NULL AND NOT drained AND ` + workers.HoldsNothing

var (
	lockOrphans     = strings.Replace(orphans, "{from}", "", 1)
	LockMoreOrphans = strings.Replace(orphans, "{from}", fromClaim, 1)
)

// Rescue ends up to limit runs whose worker is absent or lost. In a healthy
// cluster it is one read.
func (r *Room) Rescue(ctx context.Context, limit int) (store.RescueReply, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return store.RescueReply{}, err
	}
	defer r.pg.Leave()
	some := false
	var end job.WorkerID
	at := RescueMark{Gaps: r.workers.Gaps.From()}
	err := r.pg.Retry(ctx, "rescue", pg.Reading, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Upkeep, nil, &pg.Statement{
			Text: haveSuspects, Args: []any{r.pg.Namespace, at.Gaps}, Each: func(scan pg.Scan) error { return scan(&some, &end) },
		})
	})
	if err == nil && !some {
		r.workers.Gaps.Reached(end)
	}
	if err != nil || !some {
		return store.RescueReply{}, err
	}
	var all store.RescueReply
	for all.Total() < limit {
		n := min(RescuedAtOnce, limit-all.Total())
		var reached RescueMark
		moves, err := r.transit(ctx, "rescue", func(ctx context.Context, t pg.Session, f *followed) ([]job.Move, hints.Set, error) {
			reached = at
			return r.RescueIn(ctx, t, f, n, &reached)
		})
		if err != nil {
			if all.Total() > 0 {
				return all, nil // the next round goes on
			}
			return store.RescueReply{}, err
		}
		at = reached
		for i := range moves {
			all.Add(&moves[i])
		}
		if len(moves) < n {
			break
		}
	}
	return all, nil
}

// RescuedAtOnce is how many runs one transaction takes back. Their failures come
// along, up to 400 KB each, over a link that may be slow.
const RescuedAtOnce = 50

// RescueIn takes back what comes behind a place, and moves that on.
func (r *Room) RescueIn(ctx context.Context, session pg.Session, f *followed, limit int, at *RescueMark) ([]job.Move, hints.Set, error) {
	drained := &pg.Statement{Text: markDrained, Args: []any{r.pg.Namespace}}
	moves, told, err := r.moveAll(ctx, session, f, func(ctx context.Context, session pg.Session) (found []*job.Subject, now time.Time, err error) {
		text, args := lockOrphans, []any{r.pg.Namespace, limit, at.Worker, at.Gaps}
		steps := []*pg.Statement{drained, nowStep(&now)}
		if at.Claim.Valid { // drained was once for all that follow: it passes the dead entries of every suspect
			text, args, steps = LockMoreOrphans, append(args, at.Claim), steps[1:]
		}
		lock := &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
			f, err := readSubject(scan, &at.Claim)
			found, at.Worker = append(found, f), f.Worker
			return err
		}}
		err = session.Run(ctx, append(steps, lock)...)
		return found, now, err
	}, func(f *job.Subject) job.End { return job.Rescue(f, r.MaxLost, r.keep(f.Queue)) })
	if err != nil || len(moves) == limit {
		return moves, told, err
	}
	return moves, told, session.Run(ctx, drained)
}
