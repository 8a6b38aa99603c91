package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// MarkLost declares workers lost whose last beat is older than their own limit, if
// the declarer has beaten throughout such a time. The declarer never declares
// itself, and must be alive to declare others.
//
// The clock may have been set since they beat. Set forward, everybody looks
// late, the declarer too, who has just beaten: nobody is lost then, and the
// next beats count. One who has beaten since and does not know it yet cannot
// tell. Set back, the beats of the dead lie ahead, and count from now.
func (s *Store) MarkLost(ctx context.Context, l store.MarkLostRequest) (lost store.MarkLostReply, err error) {
	var locks []string
	err = s.write(ctx, 1, func(t *transition) (err error) {
		lost = store.MarkLostReply{}
		if _, err := t.liveWorker(l.By); err != nil {
			return err
		}
		if lost.Neighbours, locks, err = t.neighbours(l); err != nil {
			return err
		}
		orphans, err := t.orphans(1)
		if err != nil {
			return err
		}
		lost.Orphans = len(orphans) > 0
		ahead := t.On("UPDATE pawl_worker SET beat = ?2 WHERE namespace = ?1 AND lost IS NULL AND beat > ?2 + 1000000").Int(t.Now)
		if err := ahead.Exec(); err != nil {
			return err
		}
		fresh, err := t.On("SELECT 1 FROM pawl_worker WHERE namespace = ? AND id = ? AND beat = ? AND beat + lost_after / 2 >= ?").
			Int(int64(l.By)).Int(l.Beat.UnixMicro()).Int(t.Now).Found()
		if err != nil || !fresh {
			return err
		}
		const late = "namespace = ?1 AND id <> ?2 AND lost IS NULL AND beat + lost_after < ?3 AND lost_after <= ?4"
		lost.Workers, err = t.lose(
			t.On("SELECT 1 FROM pawl_worker WHERE split <> 0 AND "+late+" LIMIT 1").Int(int64(l.By)).Int(t.Now).Int(l.Steady.Microseconds()),
			t.On("UPDATE pawl_worker SET lost = ?3 WHERE "+late).Int(int64(l.By)).Int(t.Now).Int(l.Steady.Microseconds()))
		return err
	})
	if err != nil {
		return store.MarkLostReply{}, err
	}
	for i := range lost.Neighbours {
		n := &lost.Neighbours[i]
		n.Dead = lite.SameKernel(n.Machine, l.Machine) && s.alive.IsFree(s.namespace, n.ID, locks[i])
	}
	return lost, nil
}

// lose declares workers lost, and says how many. The registry changes when some
// of them share totals.
func (t *transition) lose(shared, update *lite.Query) (int, error) {
	some, err := shared.Found()
	if err != nil {
		return 0, err
	}
	n, err := update.Changes()
	if err == nil && some {
		err = t.changeRegistry()
	}
	return int(n), err
}

// neighbours lists the live workers that the declarer may be able to tell to be
// dead, and the lock files in which they hold their bytes.
func (t *transition) neighbours(l store.MarkLostRequest) (found []store.Neighbour, locks []string, err error) {
	if l.Machine == "" {
		return nil, nil, nil
	}
	q := t.On("SELECT id, label, machine, process, start, lock FROM pawl_worker WHERE namespace = ? AND id <> ? AND lost IS NULL AND (machine = ? OR lock <> '')").
		Int(int64(l.By)).Text(l.Machine)
	for q.Step() {
		found = append(found, store.Neighbour{
			ID: job.WorkerID(q.ColInt(0)), Label: q.ColText(1), Machine: q.ColText(2), Process: int(q.ColInt(3)), Start: q.ColText(4),
		})
		locks = append(locks, q.ColText(5))
	}
	return found, locks, q.Done()
}

// MarkDead declares workers lost that are proven dead.
func (s *Store) MarkDead(ctx context.Context, dead []job.WorkerID) (lost int, err error) {
	err = s.write(ctx, len(dead), func(t *transition) error {
		lost = 0
		for _, w := range dead {
			n, err := t.lose(
				t.On("SELECT 1 FROM pawl_worker WHERE namespace = ? AND id = ? AND lost IS NULL AND split <> 0").Int(int64(w)),
				t.On("UPDATE pawl_worker SET lost = ?3 WHERE namespace = ?1 AND id = ?2 AND lost IS NULL").Int(int64(w)).Int(t.Now))
			if err != nil {
				return err
			}
			lost += n
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return lost, nil
}

// Rescue ends up to limit runs whose worker is absent or lost.
func (s *Store) Rescue(ctx context.Context, limit int) (rescued store.RescueReply, err error) {
	err = s.write(ctx, limit, func(t *transition) (err error) {
		rescued, err = t.rescue(limit)
		return err
	})
	if err != nil {
		return store.RescueReply{}, err
	}
	return rescued, nil
}

func (t *transition) rescue(limit int) (rescued store.RescueReply, err error) {
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
			rescued.Deaths = store.AddDeaths(rescued.Deaths, s.death(end.Reason))
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
		q := t.On("SELECT worker FROM " + running + " AND worker > ? ORDER BY worker LIMIT 1").Int(worker)
		if !q.Step() {
			return found, q.Done()
		}
		worker = q.ColInt(0)
		if err := q.Done(); err != nil {
			return nil, err
		}
		live, err := t.On("SELECT 1 FROM pawl_worker WHERE namespace = ? AND id = ? AND lost IS NULL").Int(worker).Found()
		if err != nil {
			return nil, err
		}
		if live {
			continue
		}
		more, err := mortals(t.On("SELECT " + subjectColumns + mortalColumns + " FROM " + running + " AND worker = ? ORDER BY id LIMIT ?").
			Int(worker).Int(int64(limit - len(found))))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}
