package workers

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Meets are the meetings of the namespaces of a process at which their workers
// beat, and look for others that are late.
type Meets struct {
	members *pg.Together // nil where the store is alone
	beat    *pg.Meeting[beatAsk, beatAnswer]
	late    *pg.Meeting[lateAsk, store.MarkLostReply]
}

// patience of both: a lease is counted from before.
const patience = 20 * time.Millisecond

// NewMeets makes them; without a place to meet each namespace is alone.
func NewMeets(t *pg.Together) *Meets {
	kind := pg.MeetingKind{Patience: patience, Reserved: true, Limits: pg.SharedLimits}
	return &Meets{members: t, beat: pg.Meet(t, kind, beatTogether), late: pg.Meet(t, kind, lookForLate)}
}

// come counts workers that will come to the meetings.
func (m *Meets) come(n int) {
	if m.members != nil {
		m.members.Members.Add(int64(n))
	}
}

// beatAsk is a beat of a worker none of whose handlers has begun since the last.
type beatAsk struct {
	namespace int32
	worker    job.WorkerID
	leader    job.WorkerID // from which the search begins
	version   int64        // by which it splits its totals; 0: it has none
}

type beatAnswer struct {
	reply  store.BeatReply
	leader job.WorkerID
	crews  store.Crews
}

// beatWorkers is beatWorker for one worker of each of many namespaces. A row that
// is locked, by a claim that is under way, is passed over: nobody waits for
// another namespace's lock. A worker with totals is passed over, too, unless
// nobody comes or goes: its version is that of the registry, everybody who shares
// has stored it, and nobody who left may hold runs. Then beatSplitting would answer
// who shares, and so does this.
//
//   - worker_pkey finds the workers and their leaders, namespace_pkey the versions,
//     job_cancel the runs.
const beatWorkers = `WITH own AS MATERIALIZED (
	SELECT b.n, b.leader, b.version, w.ctid AS place
	FROM (
		SELECT b.*
		FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[])
			WITH ORDINALITY AS b (namespace, worker, leader, version, n)
		OFFSET 0
	) AS b
	JOIN pawl.worker AS w ON w.namespace = b.namespace AND w.id = b.worker
	WHERE w.lost IS NULL
		AND (
			b.version = 0
			OR w.split = b.version
				AND b.version = (SELECT s.registry FROM pawl.namespace AS s WHERE s.id = b.namespace)
				AND NOT EXISTS (
					SELECT
					FROM pawl.worker AS o
					WHERE o.namespace = b.namespace
						AND o.totals IS NOT NULL
						AND CASE WHEN o.lost IS NULL THEN o.split NOT IN (0, b.version) ELSE NOT o.drained END
				)
		)
	ORDER BY w.namespace, w.id
	FOR NO KEY UPDATE OF w SKIP LOCKED
), beaten AS (
	UPDATE pawl.worker AS w
	SET beat = {now}
	FROM own
	WHERE w.ctid = own.place
	RETURNING own.n, own.leader, own.version, w.namespace, w.id
)
SELECT b.n, 0 AS what, {now}, NULL::uuid, 0::bigint AS run, NULL::jsonb, false, coalesce((
	SELECT l.id
	FROM pawl.worker AS l
	WHERE l.namespace = b.namespace AND l.lost IS NULL AND NOT l.remote AND l.id >= b.leader
	ORDER BY l.id
	LIMIT 1
), b.id), (SELECT s.revision FROM pawl.namespace AS s WHERE s.id = b.namespace)
FROM beaten AS b
UNION ALL
SELECT b.n, 1, {now}, j.id, j.run, NULL, false, 0, 0
FROM beaten AS b
JOIN pawl.job AS j ON j.namespace = b.namespace AND j.worker = b.id AND j.cancel
UNION ALL
SELECT b.n, 2, {now}, NULL, o.id, o.totals, o.split <> 0, 0, 0
FROM beaten AS b
JOIN pawl.worker AS o ON o.namespace = b.namespace
WHERE b.version <> 0
	AND o.lost IS NULL
	AND o.totals IS NOT NULL
	AND (o.split <> 0 OR o.id = b.id)
ORDER BY n, what, run`

// beatWith beats together with other namespaces, and says whether it did.
func (r *Room) beatWith(ctx context.Context, b *store.Beat) (reply store.BeatReply, met bool) {
	if r.meets.beat == nil || len(b.Begun) > 0 || b.Serves != nil {
		return reply, false
	}
	ask := beatAsk{namespace: r.pg.Namespace, worker: b.Worker, leader: r.Leader.From(b.Worker)}
	if b.Splits {
		if ask.version = b.Version; b.Version == 0 {
			return reply, false // it begins
		}
	}
	answer, met := r.meets.beat.Do(ctx, ask)
	if !met {
		return reply, false
	}
	r.Leader.found(answer.leader)
	if b.Splits {
		answer.reply.Version, answer.reply.Settled, answer.reply.Crews = b.Version, true, answer.crews.Mine()
	}
	return answer.reply, true
}

// beatTogether renews the leases of many workers.
func beatTogether(asks []beatAsk, answers []*beatAnswer) []*pg.Statement {
	n := len(asks)
	namespaces, workers, leaders, versions := make([]int32, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, a := range asks {
		namespaces[i], workers[i], leaders[i], versions[i] = a.namespace, int64(a.worker), int64(a.leader), a.version
	}
	return []*pg.Statement{{Text: beatWorkers, Args: []any{namespaces, workers, leaders, versions}, Each: func(scan pg.Scan) error {
		var n, what int
		var now time.Time
		var id pgtype.UUID
		var run int64
		var totals []byte
		var shares bool
		var leader job.WorkerID
		var revision int64
		if err := scan(&n, &what, &now, &id, &run, &totals, &shares, &leader, &revision); err != nil {
			return err
		}
		switch what {
		case 0:
			worker := asks[n-1].worker
			answers[n-1] = &beatAnswer{reply: store.BeatReply{Now: now.UTC(), Revision: revision, Leader: leader == worker}, leader: leader, crews: store.Crews{Worker: worker}}
		case 1:
			answers[n-1].reply.Cancels = append(answers[n-1].reply.Cancels, store.RunRef{ID: id.Bytes, Run: run})
		case 2:
			answers[n-1].crews.Add(job.WorkerID(run), totals, shares)
		}
		return nil
	}}}
}

// lateAsk is a request to declare workers lost.
type lateAsk struct {
	namespace int32
	store.MarkLostRequest
}

// lookLate finds, for one worker of each of many namespaces, whether there is
// anything for loseWorkers to do, and answers the rest of what that answers. It
// locks and changes nothing. Who is not there, or has something to do, asks alone.
//
//   - worker_pkey finds the workers; Suspects has its own.
var lookLate = `SELECT e.n,
	EXISTS (
		SELECT
		FROM pawl.worker AS w
		WHERE w.namespace = e.namespace
			AND w.lost IS NULL
			AND (
				w.id <> e.worker
					AND w.beat + w.lost_after * interval '1 microsecond' < {now}
					AND w.lost_after <= e.steady
				OR w.beat > {now} + interval '1 second'
			)
	),
	EXISTS (` + strings.ReplaceAll(Suspects, "$1", "e.namespace") + `),
	o.id, coalesce(o.label, ''), coalesce(o.process, 0), coalesce(o.start, '')
FROM (
	SELECT e.*
	FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::text[])
		WITH ORDINALITY AS e (namespace, worker, steady, machine, n)
	OFFSET 0
) AS e
JOIN pawl.worker AS me ON me.namespace = e.namespace AND me.id = e.worker
LEFT JOIN pawl.worker AS o ON o.namespace = e.namespace
	AND o.id <> e.worker
	AND o.lost IS NULL
	AND o.machine = e.machine
	AND e.machine <> ''
WHERE me.lost IS NULL`

// lookForLate answers for namespaces where nobody is to be declared lost.
func lookForLate(asks []lateAsk, answers []*store.MarkLostReply) []*pg.Statement {
	n := len(asks)
	namespaces, workers, steady, machines := make([]int32, n), make([]int64, n), make([]int64, n), make([]string, n)
	for i, a := range asks {
		namespaces[i], workers[i], steady[i], machines[i] = a.namespace, int64(a.By), a.Steady.Microseconds(), pg.Legible(a.Machine)
	}
	return []*pg.Statement{{Text: lookLate, Args: []any{namespaces, workers, steady, machines}, Each: func(scan pg.Scan) error {
		var n int
		var work, orphans bool
		var id pgtype.Int8
		var other store.Neighbour
		if err := scan(&n, &work, &orphans, &id, &other.Label, &other.Process, &other.Start); err != nil || work {
			return err
		}
		a := answers[n-1]
		if a == nil {
			a = &store.MarkLostReply{Orphans: orphans}
			answers[n-1] = a
		}
		if id.Valid {
			other.ID, other.Machine = job.WorkerID(id.Int64), asks[n-1].Machine
			a.Neighbours = append(a.Neighbours, other)
		}
		return nil
	}}}
}
