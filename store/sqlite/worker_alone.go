package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Alone asks whether a run may be the one for which a worker empties itself.
func (s *Store) Alone(ctx context.Context, w job.WorkerID, run store.RunRef) (mine bool, err error) {
	err = s.write(ctx, 1, func(t *transition) (err error) {
		mine, err = t.alone(w, run)
		return err
	})
	return mine && err == nil, err
}

func (t *transition) alone(w job.WorkerID, run store.RunRef) (bool, error) {
	if _, owned, err := t.owned(w, run.ID, run.Run); err != nil || !owned {
		return false, err
	}
	taken, err := t.On(`SELECT 1 FROM pawl_alone AS a JOIN pawl_job AS j ON j.namespace = a.namespace AND j.id = a.job
		WHERE a.namespace = ? AND j.run = a.run AND j.state = 3 AND j.id <> ?`).Blob(run.ID[:]).Found()
	if err != nil || taken {
		return false, err
	}
	return true, t.On("INSERT OR REPLACE INTO pawl_alone (namespace, job, run) VALUES (?, ?, ?)").Blob(run.ID[:]).Int(run.Run).Exec()
}
