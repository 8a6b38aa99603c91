package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Rescue ends up to limit runs whose worker is absent or lost.
func (t *Transition) Rescue(limit int) (rescued store.RescueReply, err error) {
	orphans, err := t.orphans(limit)
	if err != nil {
		return rescued, err
	}
	for i := range orphans {
		s := &orphans[i]
		m, err := t.move(s, job.Rescue(&s.Subject, t.MaxLost, t.Keep(s.Queue)))
		if err != nil {
			return rescued, err
		}
		rescued.Add(&m)
	}
	return rescued, nil
}

// By primary key.
const liveWorker = `SELECT 1
	FROM pawl_worker
	WHERE namespace = ? AND id = ? AND lost IS NULL`

// What orphans reads, both by pawl_job_held: the next worker behind one, and the
// runs of a worker.
const nextHolder = `SELECT worker
	FROM ` + Running + ` AND worker > ?
	ORDER BY worker
	LIMIT 1`

var someRunsOfWorker = runsOfWorker + `
	ORDER BY id
	LIMIT ?`

// orphans reads running jobs whose worker is absent or lost. It steps from one
// worker to the next on pawl_job_held, so that the jobs of live workers, which
// are nearly all, are never read.
func (t *Transition) orphans(limit int) ([]subject, error) {
	var found []subject
	worker := int64(-1 << 62)
	for len(found) < limit {
		q := t.On(nextHolder).Int(worker)
		if !q.Step() {
			return found, q.Done()
		}
		worker = q.ColInt(0)
		if err := q.Done(); err != nil {
			return nil, err
		}
		live, err := t.On(liveWorker).Int(worker).Found()
		if err != nil {
			return nil, err
		}
		if live {
			continue
		}
		more, err := subjects(t.On(someRunsOfWorker).Int(worker).Int(int64(limit - len(found))))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// HasOrphans reports whether there is something to rescue.
func (t *Transition) HasOrphans() (bool, error) {
	found, err := t.orphans(1)
	return len(found) > 0, err
}
