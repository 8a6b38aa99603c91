package claims

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// Claim leases ready jobs to a worker. One that finds nothing writes nothing:
// no flush, and no wake of the listeners of other processes.
func Claim(t *jobs.Transition, c *store.Claim, repeat bool, from Places, memory *Memory) (store.ClaimReply, error) {
	answer := store.ClaimReply{Now: lite.TimeOf(t.Now)}
	newest, revision, err := workers.Claimant(&t.Session, c.Worker)
	if err != nil {
		return answer, err
	}
	answer.Revision = revision
	if len(c.Begun) > 0 {
		if err := t.MarkBegun(c.Worker, c.Begun); err != nil {
			return answer, err
		}
	}
	if repeat || c.Seq <= newest {
		answer.Jobs, err = claimedBy(t, c)
		return answer, err
	}
	memory.opened(c)
	k := &claiming{Transition: t, claim: c, from: from, memory: memory, answer: &answer}
	for i := range c.Queues {
		if q := &c.Queues[i]; q.Limit > 0 {
			if err := k.queue(q); err != nil {
				return answer, err
			}
		}
	}
	if len(answer.Jobs) > 0 {
		if err := t.Query(setNewestClaim).Int(c.Seq).Int(t.Namespace).Int(int64(c.Worker)).Exec(); err != nil {
			return answer, err
		}
	}
	next := k.next
	if next != 0 {
		answer.Next = time.Duration(min(next-t.Now, maxNext)) * time.Microsecond
	}
	return answer, nil
}

// claiming is one claim under way.
type claiming struct {
	*jobs.Transition
	claim  *store.Claim
	from   Places
	memory *Memory
	answer *store.ClaimReply
	moved  int   // jobs that were met where they do not belong
	next   int64 // when the next job falls due that is not ready; 0 for none
}

// queue takes from one queue what it gives, and writes that down.
func (k *claiming) queue(q *store.QueueClaim) error {
	closed, err := settings.IsClosed(&k.Snapshot, q.Queue, k.Now)
	if err != nil || closed.Is {
		if !closed.Until.IsZero() {
			k.answer.AddCooling(q.Queue, closed.Until)
		}
		return err
	}
	if k.claim.Gates.Touches(q.Queue) {
		return k.gatedQueue(q)
	}
	room := k.claim.PerQueue()
	_, err = k.plain(q, &room)
	return err
}

// plain takes jobs that have no gate, and says how many.
func (k *claiming) plain(q *store.QueueClaim, room *int64) (int, error) {
	look := look{Transition: k.Transition, claim: k.claim, queue: q, from: k.from, room: *room}
	leased, err := look.take(nil)
	if err != nil {
		return 0, err
	}
	*room = look.room
	if err := k.putRight(&look); err != nil {
		return 0, err
	}
	k.answer.More = k.answer.More || look.bounded
	if len(leased) < q.Limit && !look.bounded {
		due, err := nextDue(k.Transition, q, 0)
		if err != nil {
			return 0, err
		}
		k.upcoming(due)
	}
	return len(leased), k.lease(leased)
}

// putRight moves what a look has met in the wrong place, and notes the gates.
func (k *claiming) putRight(l *look) error {
	if err := l.putRight(); err != nil {
		return err
	}
	k.moved += len(l.gated)
	for _, g := range l.gated {
		if g.gate != 0 {
			k.memory.Turns.Note(l.queue.Queue, g.gate, g.kind, g.key, nil)
		}
	}
	return nil
}

// upcoming notes when a job falls due, in microseconds; 0 is none.
func (k *claiming) upcoming(due int64) {
	if due != 0 && (k.next == 0 || due < k.next) {
		k.next = due
	}
}

// lease writes down what was taken, and answers it.
func (k *claiming) lease(leased []store.LeasedJob) error {
	if len(leased) == 0 {
		return nil
	}
	if err := lease(k.Transition, k.claim, leased); err != nil {
		return err
	}
	if k.answer.Jobs == nil { // a job is large: it is moved only where parts are put together
		k.answer.Jobs = leased
	} else {
		k.answer.Jobs = append(k.answer.Jobs, leased...)
	}
	return nil
}

// What a claim writes, by primary keys. A claim that fails is undone as a whole: with FAIL
// SQLite need not keep what it takes to undo one statement.
const (
	leaseOne = `UPDATE pawl_job
	SET state = 3, run = run + 1, worker = ?, claim = ?, started = ?
	WHERE namespace = ? AND id = ?`

	leaseGroup = `UPDATE OR FAIL pawl_job
	SET state = 3, run = run + 1, worker = ?, claim = ?, started = ?
	WHERE namespace = ? AND id IN ` + jobs.GroupOfIDs

	setNewestClaim = `UPDATE pawl_worker
	SET claim = ?
	WHERE namespace = ? AND id = ?`
)

// lease writes what was taken. The jobs were all read before the first write:
// changing an index while stepping through it would show rows twice.
func lease(t *jobs.Transition, c *store.Claim, leased []store.LeasedJob) error {
	for i := range leased {
		l := &leased[i]
		l.State, l.Run, l.Worker, l.Started, l.CancelAsked = job.Running, l.Run+1, c.Worker, lite.TimeOf(t.Now), false
	}
	for rest := leased; len(rest) > 0; {
		text, n := leaseOne, 1
		if len(rest) >= jobs.Group {
			text, n = leaseGroup, jobs.Group
		}
		q := t.Query(text).Int(int64(c.Worker)).Int(c.Seq).Int(t.Now).Int(t.Namespace)
		for i := range rest[:n] {
			q.Blob(rest[i].ID[:])
		}
		if err := q.Exec(); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// maxNext is a year: the microseconds until the end of time are too many for a
// time.Duration, and would be a time that is near.
const maxNext = 365 * 24 * 3600 * 1_000_000

// The due time of the next scheduled job of one priority, without a gate and
// behind one.
//   - A seek on pawl_job_ready, and on pawl_job_gated.
const (
	dueAfter = `SELECT due
	FROM pawl_job INDEXED BY pawl_job_ready
	WHERE namespace = ? AND state = 2 AND gate IS NULL AND queue = ? AND priority = ? AND due > ?
	ORDER BY due
	LIMIT 1`

	dueBehindGate = `SELECT due
	FROM pawl_job INDEXED BY pawl_job_gated
	WHERE namespace = ? AND state = 2 AND gate IS NOT NULL AND queue = ? AND priority = ? AND due > ? AND gate = ?
	ORDER BY due
	LIMIT 1`
)

// nextDue is the due time of the queue's next scheduled job, 0 for none: one
// seek per priority.
func nextDue(t *jobs.Transition, of *store.QueueClaim, gate int64) (int64, error) {
	var next int64
	for p := job.MinPriority; p <= job.MaxPriority; p++ {
		text := dueAfter
		if gate != 0 {
			text = dueBehindGate
		}
		q := t.On(text).Text(of.Queue).Int(int64(p)).Int(t.Now)
		if gate != 0 {
			q.Int(gate)
		}
		due, err := q.One()
		if err != nil {
			return 0, err
		}
		if due != 0 && (next == 0 || due < next) {
			next = due
		}
	}
	return next, nil
}
