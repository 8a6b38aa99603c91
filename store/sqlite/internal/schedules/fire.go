package schedules

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// By primary key. What was computed from another state finds no row.
const (
	addState = `INSERT INTO pawl_schedule (namespace, name, revision, anchor, next, last, expires, cron, zone)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT DO NOTHING`

	moveState = `UPDATE pawl_schedule
	SET revision = ?3, anchor = ?4, next = ?5, last = coalesce(?6, last), expires = ?7, cron = ?8, zone = ?9
	WHERE namespace = ?1 AND name = ?2 AND next IS ?10 AND revision <= ?3`

	countJobs = `UPDATE pawl_schedule
	SET last_job = ?3, fires = fires + ?4, skips = skips + ?5
	WHERE namespace = ?1 AND name = ?2`

	dropState = `DELETE FROM pawl_schedule
	WHERE namespace = ? AND name = ?`
)

// Fire moves schedules on, each with the jobs of its due times.
func Fire(t *jobs.Transition, revision int64, list []store.Firing) ([]store.Fired, error) {
	fired := make([]store.Fired, len(list))
	if now, err := settings.Revision(&t.Snapshot); err != nil || now != revision {
		return fired, err
	}
	for i := range list {
		f := &list[i]
		moved, err := move(&t.Session, revision, f)
		if err != nil {
			return nil, err
		}
		if fired[i].Moved = moved; !moved || len(f.Jobs) == 0 {
			continue
		}
		if fired[i].Receipts, err = t.Enqueue(f.Drafts()); err != nil {
			return nil, err
		}
		fires, skips, last := fired[i].Counts()
		if err := t.On(countJobs).Text(f.Name).Blob(last[:]).Int(fires).Int(skips).Exec(); err != nil {
			return nil, err
		}
	}
	return fired, nil
}

func move(t *lite.Session, revision int64, f *store.Firing) (bool, error) {
	expires := lite.Later(max(t.Now, micros(f.Next), micros(f.Last)), store.KeepSchedule)
	text := moveState
	if f.New {
		text = addState
	}
	q := t.On(text).Text(f.Name).Int(revision).Int(lite.Micros(f.Anchor)).TimeOrNull(f.Next).TimeOrNull(f.Last).Int(expires).
		Text(f.Cron).Text(f.Zone)
	if !f.New {
		q.TimeOrNull(f.Was)
	}
	n, err := q.Changes()
	return n == 1, err
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return lite.Micros(t)
}

// Trigger accepts a job beside the due times.
func Trigger(t *jobs.Transition, name string, draft job.Draft, op store.Operator) (job.Receipt, error) {
	receipts, err := t.Enqueue([]job.Draft{draft})
	if err != nil {
		return job.Receipt{}, err
	}
	return receipts[0], settings.Audit(&t.Session, op, store.TriggerAction, name, "job "+receipts[0].ID.String())
}

// Forget removes a state.
func Forget(t *lite.Session, name string) error { return t.On(dropState).Text(name).Exec() }
