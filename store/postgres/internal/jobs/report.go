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
func (r *Room) ReportRuns(ctx context.Context, w job.WorkerID, refs []store.RunRef) (store.ReportReply, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return store.ReportReply{}, err
	}
	defer r.pg.Leave()
	if len(refs) == 0 {
		if _, ok := r.meets.idle.Do(ctx, idleAsk{r.pg.Namespace, w}); ok {
			return store.ReportReply{}, nil
		}
	}
	held, unknown, err := r.compare(ctx, w, refs)
	if err != nil || len(unknown) == 0 {
		return held, err
	}
	moves, err := r.transit(ctx, "hold", func(ctx context.Context, t pg.Session, f *followed) ([]job.Move, hints.Set, error) {
		ids, runs := workers.RefArrays(unknown)
		leased := lockBy(lostRuns, r.pg.Namespace, w, ids, runs)
		return r.moveAll(ctx, t, f, leased, func(s *job.Subject) job.End { return job.GiveBack(s, r.keep(s.Queue)) })
	})
	if err != nil {
		return store.ReportReply{}, err
	}
	held.Returned = len(moves)
	return held, nil
}

// What compare reads: whether the worker is not lost (worker_pkey), and what is
// leased to it (job_held).
const (
	isAlive    = "SELECT EXISTS (SELECT FROM pawl.worker WHERE namespace = $1 AND id = $2 AND lost IS NULL)"
	leasedRuns = "SELECT id, run FROM pawl.job WHERE namespace = $1 AND state = 3 AND worker = $2"
)

// compare reads what is leased to the worker. Nothing is locked: most of the time
// both sides agree.
func (r *Room) compare(ctx context.Context, w job.WorkerID, refs []store.RunRef) (held store.ReportReply, unknown []store.RunRef, err error) {
	leased := map[store.RunRef]bool{}
	alive := false
	err = r.pg.Retry(ctx, "hold", pg.Reading, func(ctx context.Context, _ bool) error {
		clear(leased)
		return r.pg.Send(ctx, r.pg.Finish, pg.UpkeepLimits,
			&pg.Statement{Text: isAlive, Args: []any{r.pg.Namespace, w},
				Each: func(scan pg.Scan) error { return scan(&alive) }},
			&pg.Statement{Text: leasedRuns, Args: []any{r.pg.Namespace, w},
				Each: func(scan pg.Scan) error {
					var run store.RunRef
					err := scan(&run.ID, &run.Run)
					leased[run] = true
					return err
				}})
	})
	if err != nil {
		return held, nil, err
	}
	if !alive {
		r.workers.Asked.Forget(w)
		return held, nil, fmt.Errorf("worker %d: %w", w, job.ErrWorkerLost)
	}
	for _, run := range refs {
		if !leased[run] {
			held.Stale = append(held.Stale, run)
		}
	}
	for _, run := range refs {
		delete(leased, run)
	}
	for run := range leased {
		unknown = append(unknown, run)
	}
	return held, unknown, nil
}

// fromFree locks runs of a worker ($2), and passes those by that are locked.
//
//   - job_pkey finds the rows.
const fromFree = `
FROM (
	SELECT $1::int AS namespace, 3::smallint AS running, e.*
	FROM unnest($3::uuid[], $4::bigint[]) AS e (id, run)
	OFFSET 0
) AS e
JOIN pawl.job ON job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id
WHERE job.run = e.run
	AND job.worker = $2
	AND job.state = e.running
ORDER BY job.id
FOR UPDATE OF job SKIP LOCKED`

// lostRuns locks runs that nobody holds; one that is locked is being ended.
var lostRuns = "SELECT " + subjectColumns + fromFree

// idleAsk is the report of a worker that holds no runs.
type idleAsk struct {
	namespace int32
	worker    job.WorkerID
}

// idleWorkers finds the workers that are not lost and have no runs, as they say.
//
//   - worker_pkey finds the workers, job_held a run of each.
const idleWorkers = `SELECT e.n
FROM (
	SELECT e.*
	FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS e (namespace, worker, n)
	OFFSET 0
) AS e
JOIN pawl.worker AS w ON w.namespace = e.namespace AND w.id = e.worker
WHERE w.lost IS NULL
	AND (
		SELECT 1
		FROM pawl.job AS j
		WHERE j.namespace = ANY (ARRAY[e.namespace]) AND j.state = 3 AND j.worker = e.worker
		LIMIT 1
	) IS NULL`

func lookForIdle(asks []idleAsk, answers []*struct{}) []*pg.Statement {
	namespaces, workers := make([]int32, len(asks)), make([]int64, len(asks))
	for i, a := range asks {
		namespaces[i], workers[i] = a.namespace, int64(a.worker)
	}
	return []*pg.Statement{{Text: idleWorkers, Args: []any{namespaces, workers}, Each: func(scan pg.Scan) error {
		var n int
		if err := scan(&n); err != nil {
			return err
		}
		answers[n-1] = &struct{}{}
		return nil
	}}}
}
