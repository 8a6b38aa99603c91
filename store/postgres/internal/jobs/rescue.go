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
}

const (
	// job_held finds the jobs of a suspect. No lock is waited for, so their order
	// is that of the index.
	orphans = "SELECT orphan.* FROM (SELECT id FROM (" + workers.Suspects + `) AS suspect (id) WHERE id >= $3 ORDER BY id) AS suspect
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
	LockMoreOrphans = strings.Replace(orphans, "{from}", fromClaim, 1)
)

// Rescue ends up to limit runs whose worker is absent or lost. In a healthy
// cluster it is one read.
func (s *Room) Rescue(ctx context.Context, limit int) (store.RescueReply, error) {
	if err := s.pg.Enter(ctx); err != nil {
		return store.RescueReply{}, err
	}
	defer s.pg.Leave()
	some := false
	err := s.pg.Retry(ctx, "rescue", pg.Reading, func(ctx context.Context, _ bool) error {
		return s.pg.Send(ctx, s.pg.Reserved, nil, &pg.Statement{Text: "SELECT EXISTS (" + workers.Suspects + ")", Args: []any{s.pg.Namespace}, Each: func(scan pg.Scan) error { return scan(&some) }})
	})
	if err != nil || !some {
		return store.RescueReply{}, err
	}
	var all store.RescueReply
	var at RescueMark
	for all.Total() < limit {
		n := min(RescuedAtOnce, limit-all.Total())
		var rescued store.RescueReply
		var told hints.Set
		var reached RescueMark
		deaths := all.Deaths
		err = s.pg.Retry(ctx, "rescue", pg.Always, func(ctx context.Context, _ bool) error {
			err := s.pg.Transact(ctx, s.pg.Reserved, pg.UpkeepLimits, func(t *pg.Transaction) (err error) {
				var woken hints.Set
				reached = at
				rescued, woken, err = s.RescueIn(ctx, t, n, &reached)
				told.Join(woken) // also those of a try whose answer is lost
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
		s.hints.Tell(told)
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
	if err == nil || pg.FaultOf(err).Unknown {
		return store.AddDeaths(deaths, more...)
	}
	return deaths
}

// RescuedAtOnce is how many runs one transaction takes back. Their failures come
// along, up to 400 KB each, over a link that may be slow.
const RescuedAtOnce = 50

// RescueIn takes back what comes behind a place, and moves that on.
func (s *Room) RescueIn(ctx context.Context, session pg.Session, limit int, at *RescueMark) (rescued store.RescueReply, told hints.Set, err error) {
	text, args := lockOrphans, []any{s.pg.Namespace, limit, at.Worker}
	if at.Claim.Valid {
		text, args = LockMoreOrphans, append(args, at.Claim)
	}
	var found []subject
	lock := &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
		var f subject
		err := f.read(scan, &f.mortal.kind, &f.mortal.maxAttempts, &at.Claim)
		found, at.Worker = append(found, f), f.worker
		return err
	}}
	var now time.Time
	steps := []*pg.Statement{{Text: "SELECT {now}", Each: func(scan pg.Scan) error { return scan(&now) }}, lock}
	drained := &pg.Statement{Text: markDrained, Args: []any{s.pg.Namespace}}
	if !at.Claim.Valid { // once for all that follow: it passes the dead entries of every suspect
		steps = append([]*pg.Statement{drained}, steps...)
	}
	if err := session.Run(ctx, steps...); err != nil {
		return rescued, nil, err
	}
	var moves []move
	for _, f := range found {
		j := job.Job{ID: f.id, Run: f.run, Worker: f.worker, Used: f.used, Lost: f.lost, CancelAsked: f.cancel}
		m, err := decide(f, job.Rescue(&j, f.begun, s.MaxLost, s.keep(f.queue)), true, now)
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
	return rescued, told, session.Run(ctx, drained)
}
