package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Claim leases ready jobs to a worker. One that finds nothing writes nothing:
// no flush, and no wake of the listeners of other processes.
func (s *Store) Claim(ctx context.Context, c store.Claim) (claimed store.ClaimReply, err error) {
	rows := len(c.Begun)
	for _, q := range c.Queues {
		rows += q.Limit
	}
	repeat := s.claims.answered(c.Worker, c.Seq)
	var places places
	err = s.write(ctx, rows, func(t *transition) (err error) {
		places = s.claims.places(c.Worker)
		claimed, err = t.claim(&c, repeat, places)
		return err
	})
	if errors.Is(err, job.ErrWorkerLost) {
		s.claims.forget(c.Worker)
	}
	if err != nil {
		return store.ClaimReply{}, err
	}
	s.claims.keep(c.Worker, c.Seq, places)
	return claimed, nil
}

func (t *transition) claim(c *store.Claim, repeat bool, from places) (store.ClaimReply, error) {
	answer := store.ClaimReply{Now: lite.TimeOf(t.Now)}
	newest, err := t.liveWorker(c.Worker)
	if err != nil {
		return answer, err
	}
	if err := t.markBegun(c.Worker, c.Begun); err != nil {
		return answer, err
	}
	if repeat || c.Seq <= newest {
		answer.Jobs, err = t.claimedBy(c)
		return answer, err
	}
	var next int64
	for i := range c.Queues {
		q := &c.Queues[i]
		if q.Limit <= 0 {
			continue
		}
		paused, err := paused(&t.Snapshot, q.Queue)
		if err != nil {
			return answer, err
		}
		if paused {
			continue
		}
		before := len(answer.Jobs)
		look := look{transition: t, claim: c, queue: q, from: from, room: c.PerQueue()}
		if answer.Jobs, err = look.take(answer.Jobs); err != nil {
			return answer, err
		}
		answer.More = answer.More || look.bounded
		if len(answer.Jobs)-before < q.Limit && !look.bounded {
			due, err := t.nextDue(q.Queue)
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
	return answer, t.lease(c, answer.Jobs)
}

const (
	leaseOne   = "UPDATE pawl_job SET state = 3, run = run + 1, worker = ?, claim = ?, started = ? WHERE namespace = ? AND id = ?"
	leaseGroup = "UPDATE pawl_job SET state = 3, run = run + 1, worker = ?, claim = ?, started = ? WHERE namespace = ? AND id IN " + groupOfIDs
)

// lease writes what was taken. The jobs were all read before the first write:
// changing an index while stepping through it would show rows twice.
func (t *transition) lease(c *store.Claim, jobs []store.LeasedJob) error {
	for i := range jobs {
		l := &jobs[i]
		l.State, l.Run, l.Worker, l.Started, l.CancelAsked = job.Running, l.Run+1, c.Worker, lite.TimeOf(t.Now), false
	}
	for rest := jobs; len(rest) > 0; {
		text, n := leaseOne, 1
		if len(rest) >= group {
			text, n = leaseGroup, group
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
	return t.Query("UPDATE pawl_worker SET claim = ? WHERE namespace = ? AND id = ?").Int(c.Seq).Int(t.Namespace).Int(int64(c.Worker)).Exec()
}

// claimedBy reads what a worker still holds of one of its claims, within the
// bound of the claim.
func (t *transition) claimedBy(c *store.Claim) ([]store.LeasedJob, error) {
	var jobs []store.LeasedJob
	bytes := map[string]int64{}
	q := t.On("SELECT " + liveColumns + ", begun FROM " + running + " AND worker = ? AND claim = ? ORDER BY queue, priority, due, id").
		Int(int64(c.Worker)).Int(c.Seq)
	for q.Step() {
		if bytes[q.ColText(15)] >= c.PerQueue() {
			continue
		}
		var l store.LeasedJob
		readJob(q, &l.Job)
		l.Begun = q.ColBool(columnCount)
		bytes[l.Queue] += large(&l.Job)
		jobs = append(jobs, l)
	}
	return jobs, q.Done()
}

// markBegun notes that handlers have begun; runs that are not the worker's own
// any more are passed over, since their next beat or finish says so.
func (t *transition) markBegun(w job.WorkerID, refs []store.RunRef) error {
	for _, r := range refs {
		err := t.Query("UPDATE pawl_job SET begun = 1, started = ? WHERE namespace = ? AND id = ? AND state = 3 AND run = ? AND worker = ? AND begun = 0").
			Int(t.Now).Int(t.Namespace).Blob(r.ID[:]).Int(r.Run).Int(int64(w)).Exec()
		if err != nil {
			return err
		}
	}
	return nil
}

// maxNext is a year: the microseconds until the end of time are too many for a
// time.Duration, and would be a time that is near.
const maxNext = 365 * 24 * 3600 * 1_000_000

// nextDue is the due time of the queue's next scheduled job, 0 for none: one
// seek per priority on pawl_job_ready.
func (t *transition) nextDue(queue string) (int64, error) {
	var next int64
	for p := job.MinPriority; p <= job.MaxPriority; p++ {
		due, err := t.On("SELECT due FROM pawl_job WHERE namespace = ? AND state = 2 AND queue = ? AND priority = ? AND due > ? ORDER BY due LIMIT 1").
			Text(queue).Int(int64(p)).Int(t.Now).One()
		if err != nil {
			return 0, err
		}
		if due != 0 && (next == 0 || due < next) {
			next = due
		}
	}
	return next, nil
}
