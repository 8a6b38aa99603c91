package claims

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// Meets are the meetings of the namespaces of a process at which idle workers look
// for work, and for jobs that nobody takes.
type Meets struct {
	peek    *pg.Meeting[*peeking, struct{}]
	waiting *pg.Meeting[int32, bool] // whether a namespace has a job that waits
}

const (
	// peekPatience is short: what becomes ready meanwhile waits with it.
	peekPatience    = 10 * time.Millisecond
	waitingPatience = 20 * time.Millisecond
)

// NewMeets makes them; without a place to meet each namespace is alone.
func NewMeets(t *pg.Together) *Meets {
	return &Meets{
		peek:    pg.Meet(t, pg.MeetingKind{Patience: peekPatience, Limits: pg.SharedLimits}, peekTogether),
		waiting: pg.Meet(t, pg.MeetingKind{Patience: waitingPatience, Limits: pg.SharedLimits}, pg.LookFor(anyWaiting)),
	}
}

// What a row of peekAll is about.
const (
	peekWorker  = iota // its namespace's worker is not lost
	peekPaused         // a queue is paused
	peekStretch        // the first waiting job of a stretch
	peekCooling        // a queue cools down
)

// peekAll is peekStretches for many namespaces: their workers ($1, $2), their
// queues ($3, $4), the stretches of those ($5 and on).
//
//   - worker_pkey, namespace_pkey, pause_pkey, cool_down_pkey and, one seek for each stretch, job_ready.
const peekAll = `SELECT 0 AS what, {now}, a.n, NULL::timestamptz AS due, NULL::uuid AS id,
	(SELECT s.revision FROM pawl.namespace AS s WHERE s.id = a.namespace)
FROM (
	SELECT a.*
	FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS a (namespace, worker, n)
	OFFSET 0
) AS a
JOIN pawl.worker AS w ON w.namespace = a.namespace AND w.id = a.worker
WHERE w.lost IS NULL
UNION ALL
SELECT 1, {now}, p.n, NULL, NULL, 0
FROM (
	SELECT p.*
	FROM unnest($3::int[], $4::text[]) WITH ORDINALITY AS p (namespace, queue, n)
	OFFSET 0
) AS p
WHERE EXISTS (SELECT FROM pawl.pause AS q WHERE q.namespace = p.namespace AND q.scope = 1 AND q.name = p.queue)
	OR EXISTS (SELECT FROM pawl.pause AS q WHERE q.namespace = p.namespace AND q.scope = 3 AND q.name = '')
UNION ALL
SELECT 3, {now}, p.n, c.until, NULL, 0
FROM (
	SELECT p.*
	FROM unnest($3::int[], $4::text[]) WITH ORDINALITY AS p (namespace, queue, n)
	OFFSET 0
) AS p
` + settings.CoolingOf + `
UNION ALL
SELECT 2, {now}, f.n, j.due, j.id, 0
FROM (
	SELECT f.*
	FROM unnest($5::int[], $6::text[], $7::smallint[], $8::timestamptz[], $9::uuid[], $10::timestamptz[])
		WITH ORDINALITY AS f (namespace, queue, priority, due, id, until, n)
	OFFSET 0
) AS f
CROSS JOIN LATERAL (
	SELECT due, id
	FROM pawl.job
	WHERE namespace = f.namespace
		AND queue = f.queue
		AND state = 2
		AND gate IS NULL
		AND priority = f.priority
		AND (due, id) > (f.due, f.id)
		AND due < f.until
	ORDER BY due, id
	LIMIT 1
) AS j`

// peekTogether looks for several claims at once. It answers all of them, or none.
func peekTogether(asks []*peeking, answers []*struct{}) []*pg.Statement {
	var workerSpaces, queueSpaces, probeSpaces []int32
	var workers []int64
	var names, queues []string
	var levels []int16
	var dues []time.Time
	var ids [][16]byte
	var ends []pgtype.Timestamptz
	type place struct{ ask, at int } // of a queue, or of a stretch
	var ofQueue, ofProbe []place
	looks := make([]*hints.RowLook, len(asks))
	took := pg.Stopwatch()
	for i, p := range asks {
		namespace := p.k.room.pg.Namespace
		workerSpaces, workers = append(workerSpaces, namespace), append(workers, int64(p.k.c.Worker))
		for n, l := range p.lanes {
			queueSpaces, names, ofQueue = append(queueSpaces, namespace), append(names, l.queue.Queue), append(ofQueue, place{i, n})
		}
		for n, b := range p.probes {
			probeSpaces, queues, levels = append(probeSpaces, namespace), append(queues, b.lane.queue.Queue), append(levels, b.priority)
			dues, ids, ends = append(dues, b.from.due), append(ids, b.from.ID), append(ends, b.end())
			ofProbe = append(ofProbe, place{i, n})
		}
		looks[i] = p.hints
		p.took = func() time.Duration { return took() / time.Duration(len(asks)) } // its part, about
		answers[i] = &struct{}{}
	}
	args := []any{workerSpaces, workers, queueSpaces, names, probeSpaces, queues, levels, dues, ids, ends}
	return []*pg.Statement{{Text: peekAll, Args: args, Each: func(scan pg.Scan) error {
		var what, n int
		var now time.Time
		var due pgtype.Timestamptz
		var id pgtype.UUID
		var revision int64
		if err := scan(&what, &now, &n, &due, &id, &revision); err != nil {
			return err
		}
		switch what {
		case peekWorker:
			p := asks[n-1]
			p.now, p.revision, p.alive = now, revision, true
		case peekPaused:
			p := asks[ofQueue[n-1].ask]
			p.paused[p.lanes[ofQueue[n-1].at].queue.Queue] = true
		case peekCooling:
			p := asks[ofQueue[n-1].ask]
			p.cools(p.lanes[ofQueue[n-1].at].queue.Queue, due.Time)
		case peekStretch:
			at := ofProbe[n-1]
			asks[at.ask].firsts = append(asks[at.ask].firsts, foundFirst{asks[at.ask].probes[at.at], position{due.Time, job.ID(id.Bytes)}})
		}
		return nil
	}}, hints.LookTogether(looks)}
}

// peekWith looks together with other namespaces, and says whether it did. Only a
// claim that expects nothing does: nobody waits for it. A namespace whose sweep is
// slow makes the meeting slow once; then each looks alone for a while, and finds
// out by itself that it has to sweep in slices.
func (k *claiming) peekWith(ctx context.Context, p *peeking) bool {
	if p.hints.First() {
		return false
	}
	if _, ok := k.room.meets.peek.Do(ctx, p); !ok || !p.alive {
		return false
	}
	for _, f := range p.firsts {
		p.found(f.probe, f.at)
	}
	return true
}

// anyWaiting finds the namespaces that have one.
//
//   - job_ready and job_gated: a seek for each.
const anyWaiting = `SELECT e.n, (
	SELECT 1
	FROM pawl.job
	WHERE namespace = e.namespace AND state = 2 AND gate IS NULL AND queue > ''
	ORDER BY queue
	LIMIT 1
) IS NOT NULL OR (
	SELECT 1
	FROM pawl.job
	WHERE namespace = e.namespace AND state = 2 AND gate IS NOT NULL AND queue > ''
	ORDER BY queue
	LIMIT 1
) IS NOT NULL
FROM (SELECT e.* FROM unnest($1::int[]) WITH ORDINALITY AS e (namespace, n) OFFSET 0) AS e`
