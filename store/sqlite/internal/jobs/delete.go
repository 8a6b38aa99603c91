package jobs

import (
	"errors"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// What a delete reads and leaves, by primary keys.
const (
	archivedLogs = `SELECT logs
	FROM pawl_job_archive
	WHERE namespace = ? AND id = ?`

	archivedRest = `SELECT logs, unique_hash
	FROM pawl_job_archive
	WHERE namespace = ? AND id = ?`

	insertTombstone = `INSERT OR REPLACE INTO pawl_tombstone (namespace, id, expires)
	VALUES (?, ?, ?)`
)

// Delete removes jobs that are not running, and asks running ones to cancel.
func (t *Transition) Delete(ids []job.ID, op store.Operator) ([]store.Change, error) {
	return t.Operate(store.Verb{Name: store.VerbDelete}, ids, op, nil)
}

// Shorten removes lines of jobs that are to be deleted, so many at most that as
// many may be left, and reports whether there are more to remove.
func (t *Transition) Shorten(ids []job.ID, most int64) (more bool, err error) {
	total, left := int64(0), most
	for _, id := range ids {
		s, err := t.live(id)
		if err != nil {
			return false, err
		}
		table := "pawl_job"
		switch {
		case s != nil && s.State == job.Running:
			continue
		case s == nil:
			s, table = &subject{}, "pawl_job_archive"
			if s.logs, err = t.On(archivedLogs).Blob(id[:]).One(); err != nil {
				return false, err
			}
		}
		total += s.logs
		n := min(s.logs, total-most, left)
		if n <= 0 {
			continue
		}
		if err := t.shortenLogs(table, id, s.logs-n); err != nil {
			return false, err
		}
		total -= n
		if left -= n; left == 0 {
			return true, nil
		}
	}
	return false, nil
}

// deleteOne deletes a job with its logs and unique key. Its tombstone stays, so
// that a resend under way does not bring it back.
func (t *Transition) deleteOne(id job.ID) (store.Change, error) {
	s, ended, err := t.find(id)
	if err != nil {
		return 0, err
	}
	switch answer := store.DeleteAnswer(s.of(), ended); answer {
	case store.Changed:
	case store.Asked:
		return answer, t.askToCancel(id)
	default:
		return answer, nil
	}
	if s != nil {
		err = t.dropLive(id)
	} else {
		q := t.On(archivedRest).Blob(id[:])
		s = &subject{}
		if q.Step() {
			s.logs, s.hash = q.ColInt(0), q.ColBlob(1)
		}
		err = errors.Join(q.Done(), t.dropArchived(id))
	}
	if err != nil {
		return 0, err
	}
	if s.hash != nil {
		if err := t.dropUnique(s.hash, id); err != nil {
			return 0, err
		}
	}
	if s.logs > 0 {
		if err := t.dropLogs(id); err != nil {
			return 0, err
		}
	}
	return store.Changed, t.On(insertTombstone).Blob(id[:]).Int(lite.Later(t.Now, job.KeepTombstone)).Exec()
}
