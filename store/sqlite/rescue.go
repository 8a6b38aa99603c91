package sqlite

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Lose declares workers lost whose last beat is older than their own limit.
// The declarer never declares itself, and must be alive to declare others.
//
// The clock may have been set since they beat. Set forward, everybody looks
// late, the declarer too, who has just beaten: nobody is lost then, and the
// next beats count. One who has beaten since and does not know it yet cannot
// tell. Set back, the beats of the dead lie ahead, and count from now.
func (s *Store) Lose(ctx context.Context, by job.WorkerID, beat time.Time) (lost int, err error) {
	err = s.write(ctx, 1, func(t *transition) error {
		lost = 0
		if _, err := t.liveWorker(by); err != nil {
			return err
		}
		ahead := t.on("UPDATE pawl_worker SET beat = ?2 WHERE namespace = ?1 AND lost IS NULL AND beat > ?2 + 1000000").int(t.now)
		if err := ahead.exec(); err != nil {
			return err
		}
		fresh, err := t.on("SELECT 1 FROM pawl_worker WHERE namespace = ? AND id = ? AND beat = ? AND beat + lost_after / 2 >= ?").
			int(int64(by)).int(beat.UnixMicro()).int(t.now).found()
		if err != nil || !fresh {
			return err
		}
		n, err := t.query("UPDATE pawl_worker SET lost = ? WHERE namespace = ? AND id <> ? AND lost IS NULL AND beat + lost_after < ?").
			int(t.now).int(t.namespace).int(int64(by)).int(t.now).changes()
		lost = int(n)
		return err
	})
	if err != nil {
		return 0, err
	}
	return lost, nil
}

// Rescue ends up to limit runs whose worker is absent or lost.
func (s *Store) Rescue(ctx context.Context, limit int) (rescued store.Rescued, err error) {
	err = s.write(ctx, limit, func(t *transition) (err error) {
		rescued, err = t.rescue(limit)
		return err
	})
	if err != nil {
		return store.Rescued{}, err
	}
	return rescued, nil
}

func (t *transition) rescue(limit int) (rescued store.Rescued, err error) {
	orphans, err := t.orphans(limit)
	if err != nil {
		return rescued, err
	}
	for i := range orphans {
		s := &orphans[i]
		j := job.Job{ID: s.id, Run: s.run, Worker: s.worker, Used: s.used, Lost: s.lost, CancelAsked: s.cancel}
		end := job.Rescue(&j, s.begun, t.maxLost, t.keep(s.queue))
		if err := t.move(s, end, true); err != nil {
			return rescued, err
		}
		switch end.To {
		case job.Dead:
			rescued.Dead++
		case job.Cancelled:
			rescued.Cancelled++
		default:
			rescued.Waiting++
		}
	}
	return rescued, nil
}

// orphans reads running jobs whose worker is absent or lost. It steps from one
// worker to the next on pawl_job_held, so that the jobs of live workers, which
// are nearly all, are never read.
func (t *transition) orphans(limit int) ([]subject, error) {
	var found []subject
	worker := int64(-1 << 62)
	for len(found) < limit {
		q := t.on("SELECT worker FROM " + running + " AND worker > ? ORDER BY worker LIMIT 1").int(worker)
		if !q.step() {
			return found, q.done()
		}
		worker = q.colInt(0)
		if err := q.done(); err != nil {
			return nil, err
		}
		live, err := t.on("SELECT 1 FROM pawl_worker WHERE namespace = ? AND id = ? AND lost IS NULL").int(worker).found()
		if err != nil {
			return nil, err
		}
		if live {
			continue
		}
		more, err := subjects(t.on("SELECT " + subjectColumns + " FROM " + running + " AND worker = ? ORDER BY id LIMIT ?").
			int(worker).int(int64(limit - len(found))))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}
