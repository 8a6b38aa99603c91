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
func Claim(t *jobs.Transition, c *store.Claim, repeat bool, from Places) (store.ClaimReply, error) {
	answer := store.ClaimReply{Now: lite.TimeOf(t.Now)}
	newest, revision, err := workers.Claimant(&t.Session, c.Worker)
	if err != nil {
		return answer, err
	}
	answer.Revision = revision
	if err := t.MarkBegun(c.Worker, c.Begun); err != nil {
		return answer, err
	}
	if repeat || c.Seq <= newest {
		answer.Jobs, err = claimedBy(t, c)
		return answer, err
	}
	var next int64
	for i := range c.Queues {
		q := &c.Queues[i]
		if q.Limit <= 0 {
			continue
		}
		paused, err := settings.Paused(&t.Snapshot, q.Queue)
		if err != nil {
			return answer, err
		}
		if paused {
			continue
		}
		before := len(answer.Jobs)
		look := look{Transition: t, claim: c, queue: q, from: from, room: c.PerQueue()}
		if answer.Jobs, err = look.take(answer.Jobs); err != nil {
			return answer, err
		}
		answer.More = answer.More || look.bounded
		if len(answer.Jobs)-before < q.Limit && !look.bounded {
			due, err := nextDue(t, q.Queue)
			if err != nil {
				return answer, err
			}
			if due != 0 && (next == 0 || due < next) {
				next = due
			}
		}
	}
	if next != 0 {
		answer.Next = time.Duration(min(next-t.Now, maxNext)) * time.Microsecond
	}
	if len(answer.Jobs) == 0 {
		return answer, nil
	}
	return answer, lease(t, c, answer.Jobs)
}

// What a claim writes, by primary keys.
const (
	leaseOne = `UPDATE pawl_job
	SET state = 3, run = run + 1, worker = ?, claim = ?, started = ?
	WHERE namespace = ? AND id = ?`

	leaseGroup = `UPDATE pawl_job
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
	return t.Query(setNewestClaim).Int(c.Seq).Int(t.Namespace).Int(int64(c.Worker)).Exec()
}

// maxNext is a year: the microseconds until the end of time are too many for a
// time.Duration, and would be a time that is near.
const maxNext = 365 * 24 * 3600 * 1_000_000

// dueAfter is the due time of the next scheduled job of one priority.
//   - A seek on pawl_job_ready.
const dueAfter = `SELECT due
	FROM pawl_job
	WHERE namespace = ? AND state = 2 AND queue = ? AND priority = ? AND due > ?
	ORDER BY due
	LIMIT 1`

// nextDue is the due time of the queue's next scheduled job, 0 for none: one
// seek per priority.
func nextDue(t *jobs.Transition, queue string) (int64, error) {
	var next int64
	for p := job.MinPriority; p <= job.MaxPriority; p++ {
		due, err := t.On(dueAfter).Text(queue).Int(int64(p)).Int(t.Now).One()
		if err != nil {
			return 0, err
		}
		if due != 0 && (next == 0 || due < next) {
			next = due
		}
	}
	return next, nil
}
