package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Expire ends up to limit jobs that are not running and past their deadline.
// A running one is ended by its worker, which has the handler to stop.
func (t *Transition) Expire(limit int) (expired store.ExpireReply, err error) {
	late, err := mortals(t.On("SELECT " + subjectColumns + mortalColumns + ` FROM pawl_job INDEXED BY pawl_job_deadline
		WHERE namespace = ? AND deadline IS NOT NULL AND deadline <= ? AND state IN (1, 2, 4) ORDER BY deadline LIMIT ?`).Int(t.Now).Int(int64(limit)))
	if err != nil {
		return expired, err
	}
	for i := range late {
		l := &late[i]
		to := job.Dead
		if !job.CanMove(l.state, to) {
			to = job.Cancelled
		}
		end := job.End{ID: l.id, To: to, Reason: "its deadline passed", Keep: t.Keep(l.queue)}
		if err := t.move(l, end, false); err != nil {
			return expired, err
		}
		if to == job.Dead {
			expired.Dead++
			expired.Deaths = store.AddDeaths(expired.Deaths, l.death(end.Reason))
		} else {
			expired.Cancelled++
		}
	}
	return expired, nil
}
