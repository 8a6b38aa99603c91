package workers

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// What marks workers lost. Few live on one machine: pawl_worker_live lists them.
const (
	// Beats that lie ahead count from now.
	resetAhead = `UPDATE pawl_worker INDEXED BY pawl_worker_live
	SET beat = ?2
	WHERE namespace = ?1 AND lost IS NULL AND beat > ?2 + 1000000`

	freshBeat = `SELECT 1
	FROM pawl_worker
	WHERE namespace = ? AND id = ? AND beat = ? AND beat + lost_after / 2 >= ?`

	late = "namespace = ?1 AND id <> ?2 AND lost IS NULL AND beat + lost_after < ?3 AND lost_after <= ?4"

	lateSharer = `SELECT 1
	FROM pawl_worker INDEXED BY pawl_worker_live
	WHERE split <> 0 AND ` + late + `
	LIMIT 1`

	loseLate = `UPDATE pawl_worker INDEXED BY pawl_worker_live
	SET lost = ?3
	WHERE ` + late
)

// MarkLost declares workers lost whose last beat is older than their own limit, if
// the declarer has beaten throughout such a time. The declarer never declares
// itself, and must be alive to declare others.
//
// The clock may have been set since they beat. Set forward, everybody looks
// late, the declarer too, who has just beaten: nobody is lost then, and the
// next beats count. One who has beaten since and does not know it yet cannot
// tell. Set back, the beats of the dead lie ahead, and count from now.
func MarkLost(t *lite.Session, l *store.MarkLostRequest) (int, error) {
	if err := t.On(resetAhead).Int(t.Now).Exec(); err != nil {
		return 0, err
	}
	fresh, err := t.On(freshBeat).Int(int64(l.By)).Int(l.Beat.UnixMicro()).Int(t.Now).Found()
	if err != nil || !fresh {
		return 0, err
	}
	return lose(t,
		t.On(lateSharer).Int(int64(l.By)).Int(t.Now).Int(l.Steady.Microseconds()),
		t.On(loseLate).Int(int64(l.By)).Int(t.Now).Int(l.Steady.Microseconds()))
}

// By primary key.
const (
	liveSharer = `SELECT 1
	FROM pawl_worker
	WHERE namespace = ? AND id = ? AND lost IS NULL AND split <> 0`

	loseOne = `UPDATE pawl_worker
	SET lost = ?3
	WHERE namespace = ?1 AND id = ?2 AND lost IS NULL`
)

// MarkDead declares workers lost that are proven dead.
func MarkDead(t *lite.Session, dead []job.WorkerID) (lost int, err error) {
	for _, w := range dead {
		n, err := lose(t,
			t.On(liveSharer).Int(int64(w)),
			t.On(loseOne).Int(int64(w)).Int(t.Now))
		if err != nil {
			return 0, err
		}
		lost += n
	}
	return lost, nil
}

// lose declares workers lost, and says how many. The registry changes when some
// of them share totals, and what is declared when one was the last of its version.
func lose(t *lite.Session, shared, update *lite.Query) (int, error) {
	some, err := shared.Found()
	if err != nil {
		return 0, err
	}
	n, err := update.Changes()
	if err == nil && some {
		err = changeRegistry(t)
	}
	if err == nil && n > 0 {
		err = settings.EndVersions(t)
	}
	return int(n), err
}

// neighbours reads those that live.
//   - pawl_worker_live, in its order.
const neighbours = `SELECT id, label, machine, process, start, lock
	FROM pawl_worker INDEXED BY pawl_worker_live
	WHERE namespace = ? AND id <> ? AND lost IS NULL AND (machine = ? OR lock <> '')`

// Neighbours lists the live workers that the declarer may be able to tell to be
// dead, and the lock files in which they hold their bytes. It refuses a declarer
// that is lost itself.
func Neighbours(t *lite.Session, l *store.MarkLostRequest) (found []store.Neighbour, locks []string, err error) {
	if err := Live(t, l.By); err != nil {
		return nil, nil, err
	}
	if l.Machine == "" {
		return nil, nil, nil
	}
	q := t.On(neighbours).Int(int64(l.By)).Text(l.Machine)
	for q.Step() {
		found = append(found, store.Neighbour{
			ID: job.WorkerID(q.ColInt(0)), Label: q.ColText(1), Machine: q.ColText(2), Process: int(q.ColInt(3)), Start: q.ColText(4),
		})
		locks = append(locks, q.ColText(5))
	}
	return found, locks, q.Done()
}
