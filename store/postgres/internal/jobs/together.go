package jobs

import (
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Meets are the meetings of the namespaces of a process at which they look for
// what upkeep has to do, and report that they hold no runs.
type Meets struct {
	due  *pg.Meeting[dueAsk, dueAnswer]
	idle *pg.Meeting[idleAsk, struct{}]
}

// patience of both: nobody waits for their answer.
const patience = 20 * time.Millisecond

// NewMeets makes them; without a place to meet each namespace is alone.
func NewMeets(t *pg.Together) *Meets {
	kind := pg.MeetingKind{Patience: patience, Reserved: true, Limits: pg.SharedLimits}
	return &Meets{due: pg.Meet(t, kind, lookForDue), idle: pg.Meet(t, kind, lookForIdle)}
}

type dueAsk struct {
	namespace int32
	since     time.Time // where the look at the archive begins
}

type dueAnswer struct {
	store.Due
	now time.Time
}

// lookDueAll is lookDue for many namespaces, by the same indexes.
var lookDueAll = `SELECT e.n, d.*
FROM (
	SELECT e.*
	FROM unnest($1::int[], $2::timestamptz[]) WITH ORDINALITY AS e (namespace, since, n)
	OFFSET 0
) AS e
CROSS JOIN LATERAL (` + strings.NewReplacer("$1", "e.namespace", "$2", "e.since").Replace(lookDue) + `) AS d (now, expire, purge)`

func lookForDue(asks []dueAsk, answers []*dueAnswer) []*pg.Statement {
	namespaces, since := make([]int32, len(asks)), make([]time.Time, len(asks))
	for i, a := range asks {
		namespaces[i], since[i] = a.namespace, a.since
	}
	return []*pg.Statement{{Text: lookDueAll, Args: []any{namespaces, since}, Each: func(scan pg.Scan) error {
		var n int
		var a dueAnswer
		if err := scan(&n, &a.now, &a.Expire, &a.Purge); err != nil {
			return err
		}
		answers[n-1] = &a
		return nil
	}}}
}

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
		WHERE j.namespace = e.namespace AND j.state = 3 AND j.worker = e.worker
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
