package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// lateSubjects lists jobs past their deadline.
//   - pawl_job_deadline, in its order.
var lateSubjects = "SELECT " + subjectRow.Columns + `
	FROM pawl_job INDEXED BY pawl_job_deadline
	WHERE namespace = ? AND deadline IS NOT NULL AND deadline <= ? AND state IN (1, 2, 4)
	ORDER BY deadline
	LIMIT ?`

// Expire ends up to limit jobs that are not running and past their deadline.
// A running one is ended by its worker, which has the handler to stop.
func (t *Transition) Expire(limit int) (expired store.ExpireReply, err error) {
	late, err := subjects(t.On(lateSubjects).Int(t.Now).Int(int64(limit)))
	if err != nil {
		return expired, err
	}
	for i := range late {
		l := &late[i]
		m, err := t.move(l, job.Expire(&l.Subject, t.Keep(l.Queue)))
		if err != nil {
			return expired, err
		}
		expired.Add(&m)
	}
	return expired, nil
}

// redateJobs makes jobs due now whose time came before the clock was set back.
//   - pawl_job_ready finds them, in its order; the primary key changes them.
const redateJobs = `UPDATE pawl_job
	SET due = ?2
	WHERE namespace = ?1 AND id IN (
		SELECT id
		FROM pawl_job INDEXED BY pawl_job_ready
		WHERE namespace = ?1 AND state = 2 AND gate IS NULL AND queue = ?3 AND priority = ?4
			AND due > ?2 AND due <= ?5
			AND (created > ?2 OR created < ?6)
		ORDER BY due, id
		LIMIT ?7)`

// redateGated does so behind the gates of a queue, all of which it looks through:
// clocks are seldom set back.
//   - pawl_job_gated finds them; the primary key changes them.
const redateGated = `UPDATE pawl_job
	SET due = ?2
	WHERE namespace = ?1 AND id IN (
		SELECT id
		FROM pawl_job INDEXED BY pawl_job_gated
		WHERE namespace = ?1 AND state = 2 AND gate IS NOT NULL AND queue = ?3
			AND due > ?2 AND due <= ?4
			AND (created > ?2 OR created < ?5)
		LIMIT ?6)`

// MakeDueAgain makes up to limit jobs ready whose due time the clock had reached.
func (t *Transition) MakeDueAgain(b *store.ClockStep, limit int) (redated int, err error) {
	for _, queue := range b.Queues {
		for p := job.MinPriority; p <= job.MaxPriority; p++ {
			n, err := t.On(redateJobs).Int(t.Now).Text(queue).Int(int64(p)).Int(lite.Micros(b.Was)).
				Int(t.Now - b.Within.Microseconds()).Int(int64(limit - redated)).Changes()
			if err != nil {
				return redated, err
			}
			redated += int(n)
		}
		n, err := t.On(redateGated).Int(t.Now).Text(queue).Int(lite.Micros(b.Was)).
			Int(t.Now - b.Within.Microseconds()).Int(int64(limit - redated)).Changes()
		if err != nil {
			return redated, err
		}
		redated += int(n)
	}
	return redated, nil
}
