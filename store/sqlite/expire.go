package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Expire ends up to limit jobs that are not running and past their deadline.
// A running one is ended by its worker, which has the handler to stop.
func (s *Store) Expire(ctx context.Context, limit int) (expired store.ExpireReply, err error) {
	err = s.write(ctx, limit, func(t *transition) error {
		expired = store.ExpireReply{}
		late, err := mortals(t.On("SELECT " + subjectColumns + mortalColumns + ` FROM pawl_job INDEXED BY pawl_job_deadline
			WHERE namespace = ? AND deadline IS NOT NULL AND deadline <= ? AND state IN (1, 2, 4) ORDER BY deadline LIMIT ?`).Int(t.Now).Int(int64(limit)))
		if err != nil {
			return err
		}
		for i := range late {
			l := &late[i]
			to := job.Dead
			if !job.CanMove(l.state, to) {
				to = job.Cancelled
			}
			end := job.End{ID: l.id, To: to, Reason: "its deadline passed", Keep: t.keep(l.queue)}
			if err := t.move(l, end, false); err != nil {
				return err
			}
			if to == job.Dead {
				expired.Dead++
				expired.Deaths = store.AddDeaths(expired.Deaths, l.death(end.Reason))
			} else {
				expired.Cancelled++
			}
		}
		return nil
	})
	if err != nil {
		return store.ExpireReply{}, err
	}
	return expired, nil
}
