package jobs

import (
	"context"
	"fmt"

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
	moves, err := s.transit(ctx, "hold", func(ctx context.Context, t pg.Session) ([]job.Move, hints.Set, error) {
		ids, runs := workers.RefArrays(unknown)
		leased := lockBy(lostRuns, s.pg.Namespace, w, ids, runs)
		return s.moveAll(ctx, t, leased, func(f *job.Subject) job.End { return job.GiveBack(f, s.keep(f.Queue)) })
	})
	if err != nil {
		return store.ReportReply{}, err
	}
	held.Returned = len(moves)
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
