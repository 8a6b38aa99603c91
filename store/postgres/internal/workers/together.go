package workers

import (
	"context"
	"fmt"
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
	late    *pg.Meeting[lateAsk, lateAnswer]
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

// beatAsk is a beat of a worker none of whose handlers has begun since the last, and that
// has no totals or knows who shares them.
type beatAsk struct {
	namespace int32
	worker    job.WorkerID
	leader    job.WorkerID // from which the search begins
}

type beatAnswer struct {
	reply    store.BeatReply
	registry int64
	leader   job.WorkerID
}

// beatWorkers is beatWorker for one worker of each of many namespaces. A beat that is
// locked is passed over: nobody waits for another namespace's lock.
//
//   - worker_pkey and worker_beat_pkey find the workers, worker_live their leaders, namespace_pkey the versions,
//     job_cancel the runs.
var beatWorkers = `WITH own AS MATERIALIZED (
	SELECT a.n, a.namespace, a.worker, a.leader, b.place
	FROM (
		SELECT a.*
		FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS a (namespace, worker, leader, n)
		OFFSET 0
	) AS a
	JOIN pawl.worker AS w ON w.namespace = a.namespace AND w.id = a.worker
	CROSS JOIN LATERAL (` + beatOf("a.namespace", "a.worker") + `
		FOR UPDATE SKIP LOCKED
	) AS b
	WHERE w.lost IS NULL
), beaten AS (
	UPDATE pawl.worker_beat AS b
	SET at = {now}
	FROM own
	WHERE b.ctid = own.place
	RETURNING own.n, own.leader, own.namespace, own.worker AS id
)
SELECT b.n, 0 AS what, {now}, NULL::uuid, n.registry AS run, coalesce((
	SELECT l.id
	FROM pawl.worker AS l
	WHERE l.namespace = b.namespace AND l.lost IS NULL AND l.id > 0 AND NOT l.remote AND l.id >= b.leader
	ORDER BY l.id
	LIMIT 1
), b.id), n.revision
FROM beaten AS b
JOIN pawl.namespace AS n ON n.id = b.namespace
UNION ALL
SELECT b.n, 1, {now}, j.id, j.run, 0, 0
FROM beaten AS b
JOIN pawl.job AS j ON j.namespace = b.namespace AND j.worker = b.id AND j.cancel
ORDER BY n, what, run`

// beatWith beats together with other namespaces, and says whether it did, and which
// version the registry has.
func (r *Room) beatWith(ctx context.Context, b *store.Beat) (reply store.BeatReply, registry int64, met bool) {
	if r.meets.beat == nil || len(b.Begun) > 0 || b.Serves != nil {
		return reply, 0, false
	}
	answer, met := r.meets.beat.Do(ctx, beatAsk{namespace: r.pg.Namespace, worker: b.Worker, leader: r.Leader.From(b.Worker)})
	if met {
		r.Leader.found(answer.leader)
	}
	return answer.reply, answer.registry, met
}

// beatTogether renews the leases of many workers.
func beatTogether(asks []beatAsk, answers []*beatAnswer) []*pg.Statement {
	n := len(asks)
	namespaces, workers, leaders := make([]int32, n), make([]int64, n), make([]int64, n)
	for i, a := range asks {
		namespaces[i], workers[i], leaders[i] = a.namespace, int64(a.worker), int64(a.leader)
	}
	return []*pg.Statement{{Text: beatWorkers, Args: []any{namespaces, workers, leaders}, Each: func(scan pg.Scan) error {
		var n, what int
		var now time.Time
		var id pgtype.UUID
		var run, revision int64
		var leader job.WorkerID
		if err := scan(&n, &what, &now, &id, &run, &leader, &revision); err != nil {
			return err
		}
		switch what {
		case 0:
			answers[n-1] = &beatAnswer{
				reply:    store.BeatReply{Now: now.UTC(), Revision: revision, Leader: leader == asks[n-1].worker},
				registry: run, leader: leader,
			}
		case 1:
			answers[n-1].reply.Cancels = append(answers[n-1].reply.Cancels, store.RunRef{ID: id.Bytes, Run: run})
		}
		return nil
	}}}
}

// lateAsk is a request to declare workers lost.
type lateAsk struct {
	namespace int32
	late      job.WorkerID // behind whom the look begins
	gaps      job.WorkerID
	store.MarkLostRequest
}

type lateAnswer struct {
	store.MarkLostReply
	late, gaps job.WorkerID // where the next look goes on
}

// lookLate finds, for one worker of each of many namespaces, whether there is
// anything for loseWorkers to do, and answers the rest of what that answers. It
// locks and changes nothing. Who is not there, or has something to do, asks alone.
//
//   - worker_pkey and worker_live find the workers, worker_beat_pkey their beats, worker_machine the neighbours;
//     Suspects has its own.
var lookLate = `SELECT e.n, part.work, part.upto,
	EXISTS (` + suspectsOf("e.namespace", "e.gaps") + `),
	` + gapsEnd("e.namespace", "e.gaps") + `,
	o.id, coalesce(o.label, ''), coalesce(o.process, 0), coalesce(o.start, '')
FROM (
	SELECT e.*
	FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[])
		WITH ORDINALITY AS e (namespace, worker, steady, machine, late, gaps, n)
	OFFSET 0
) AS e
JOIN pawl.worker AS me ON me.namespace = e.namespace AND me.id = e.worker
CROSS JOIN LATERAL (
	SELECT (array_agg(r.id ORDER BY r.again DESC, r.id DESC))[1] AS upto,
		coalesce(bool_or(
			r.id <> e.worker
				AND coalesce(b.at, r.beat) + r.lost_after * interval '1 microsecond' < {now}
				AND r.lost_after <= e.steady
			OR b.at > {now} + interval '1 second'
		), true) AS work
	FROM (` + latePartOf("e.namespace", "e.late") + `) AS r
	LEFT JOIN LATERAL (` + beatOf("e.namespace", "r.id") + `
	) AS b ON true
) AS part
LEFT JOIN LATERAL (
	SELECT w.id, w.label, w.process, w.start
	FROM pawl.worker AS w
	WHERE w.namespace = e.namespace
		AND w.machine = e.machine
		AND w.machine <> ''
		AND w.lost IS NULL
		AND w.id <> e.worker
	ORDER BY w.id DESC
	LIMIT ` + fmt.Sprint(mostNeighbours) + `
) AS o ON true
WHERE me.lost IS NULL`

// lookForLate answers for namespaces where nobody is to be declared lost.
func lookForLate(asks []lateAsk, answers []*lateAnswer) []*pg.Statement {
	n := len(asks)
	namespaces, workers, steady, machines := make([]int32, n), make([]int64, n), make([]int64, n), make([]string, n)
	lates, gaps := make([]int64, n), make([]int64, n)
	for i, a := range asks {
		namespaces[i], workers[i], steady[i], machines[i] = a.namespace, int64(a.By), a.Steady.Microseconds(), pg.Legible(a.Machine)
		lates[i], gaps[i] = int64(a.late), int64(a.gaps)
	}
	return []*pg.Statement{{Text: lookLate, Args: []any{namespaces, workers, steady, machines, lates, gaps}, Each: func(scan pg.Scan) error {
		var n int
		var work, orphans bool
		var upto, end job.WorkerID
		var id pgtype.Int8
		var other store.Neighbour
		if err := scan(&n, &work, &upto, &orphans, &end, &id, &other.Label, &other.Process, &other.Start); err != nil || work {
			return err
		}
		a := answers[n-1]
		if a == nil {
			a = &lateAnswer{MarkLostReply: store.MarkLostReply{Orphans: orphans}, late: upto, gaps: end}
			answers[n-1] = a
		}
		if id.Valid {
			other.ID, other.Machine = job.WorkerID(id.Int64), asks[n-1].Machine
			a.Neighbours = append(a.Neighbours, other)
		}
		return nil
	}}}
}
