package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
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
