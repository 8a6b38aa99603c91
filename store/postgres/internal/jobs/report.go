package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// ReportRuns reports the runs a worker holds. What is leased to it beyond them was
// lost on the way, in the answer of a claim, and goes back.
func (s *Room) ReportRuns(ctx context.Context, w job.WorkerID, refs []store.RunRef) (store.ReportReply, error) {
	if err := s.pg.Enter(ctx); err != nil {
		return store.ReportReply{}, err
	}
	defer s.pg.Leave()
	held, unknown, err := s.compare(ctx, w, refs)
	if err != nil || len(unknown) == 0 {
		return held, err
	}
	var told hints.Set
	err = s.pg.Retry(ctx, "hold", pg.Always, func(ctx context.Context, _ bool) error {
		return s.pg.Transact(ctx, s.pg.Reserved, pg.UpkeepLimits, func(t *pg.Transaction) (err error) {
			var woken hints.Set
			held.Returned, woken, err = s.giveBack(ctx, t, w, unknown)
			told.Join(woken) // also those of a try whose answer is lost
			return err
		})
	})
	if err != nil {
		return store.ReportReply{}, err
	}
	s.hints.Tell(told)
	return held, nil
}

// compare reads what is leased to the worker (job_held). Nothing is locked: most
// of the time both sides agree.
func (s *Room) compare(ctx context.Context, w job.WorkerID, refs []store.RunRef) (held store.ReportReply, unknown []store.RunRef, err error) {
	leased := map[store.RunRef]bool{}
	alive := false
	err = s.pg.Retry(ctx, "hold", pg.Reading, func(ctx context.Context, _ bool) error {
		clear(leased)
		return s.pg.Send(ctx, s.pg.Reserved, pg.UpkeepLimits,
			&pg.Statement{Text: "SELECT EXISTS (SELECT FROM pawl.worker WHERE namespace = $1 AND id = $2 AND lost IS NULL)", Args: []any{s.pg.Namespace, w},
				Each: func(scan pg.Scan) error { return scan(&alive) }},
			&pg.Statement{Text: "SELECT id, run FROM pawl.job WHERE namespace = $1 AND state = 3 AND worker = $2", Args: []any{s.pg.Namespace, w},
				Each: func(scan pg.Scan) error {
					var r store.RunRef
					err := scan(&r.ID, &r.Run)
					leased[r] = true
					return err
				}})
	})
	if err != nil {
		return held, nil, err
	}
	if !alive {
		s.workers.Asked.Forget(w)
		return held, nil, fmt.Errorf("worker %d: %w", w, job.ErrWorkerLost)
	}
	for _, r := range refs {
		if !leased[r] {
			held.Stale = append(held.Stale, r)
		}
	}
	for _, r := range refs {
		delete(leased, r)
	}
	for r := range leased {
		unknown = append(unknown, r)
	}
	return held, unknown, nil
}

// lostRuns locks runs that nobody holds; one that is locked is being ended.
const lostRuns = "SELECT " + subjectColumns + ` FROM (SELECT $1::int AS namespace, 3::smallint AS running, e.* FROM unnest($3::uuid[], $4::bigint[]) AS e (id, run) OFFSET 0) AS e
	JOIN pawl.job ON job.namespace = e.namespace AND job.id = e.id
	WHERE job.run = e.run AND job.worker = $2 AND job.state = e.running ORDER BY job.id FOR UPDATE OF job SKIP LOCKED`

func (s *Room) giveBack(ctx context.Context, session pg.Session, w job.WorkerID, refs []store.RunRef) (int, hints.Set, error) {
	ids, runs := workers.RefArrays(refs)
	lock, found := subjects(lostRuns, s.pg.Namespace, w, ids, runs)
	var now time.Time
	if err := session.Run(ctx, &pg.Statement{Text: "SELECT {now}", Each: func(scan pg.Scan) error { return scan(&now) }}, lock); err != nil {
		return 0, nil, err
	}
	var moves []move
	for _, f := range *found {
		m, err := decide(f, job.Settle(job.End{ID: f.id, Run: f.run, To: job.Waiting, Keep: s.keep(f.queue)}, f.cancel), false, now)
		if err != nil {
			return 0, nil, err
		}
		moves = append(moves, m)
	}
	told, err := s.apply(ctx, session, moves, now)
	return len(moves), told, err
}
