package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Retry makes dead, cancelled or parked jobs wait again with a fresh attempt
// budget, and scheduled ones due at once.
func (t *Transition) Retry(ids []job.ID, op store.Operator) ([]store.Change, error) {
	return t.Operate(store.Verb{Name: store.VerbRetry}, ids, op, nil)
}

func (t *Transition) retryOne(id job.ID) (store.Change, error) {
	s, ended, err := t.find(id)
	if err != nil {
		return 0, err
	}
	answer, way := store.RetryAnswer(s.of(), ended, lite.TimeOf(t.Now))
	switch way {
	case store.RetryDue:
		err = t.Query(makeDue).Int(t.Now).Int(t.Namespace).Blob(id[:]).Exec()
	case store.RetryParked:
		err = t.Query(unpark).Int(t.Now).Int(t.Namespace).Blob(id[:]).Exec()
	case store.RetryEnded:
		return t.revive(id)
	}
	return answer, err
}

// What a retry changes and reads, by primary keys.
const (
	makeDue = `UPDATE pawl_job
	SET due = ?
	WHERE namespace = ? AND id = ?`

	unpark = `UPDATE pawl_job
	SET state = 2, due = ?, used = 0, throttles = 0, wait = NULL, reason = NULL
	WHERE namespace = ? AND id = ?`

	archivedHash = `SELECT unique_hash
	FROM pawl_job_archive
	WHERE namespace = ? AND id = ?`

	forgive = `UPDATE pawl_job
	SET due = ?, used = 0, lost = 0, throttles = 0, deadline = CASE WHEN deadline > ? THEN deadline END
	WHERE namespace = ? AND id = ?`
)

// What a job brings back from the archive, by primary key.
var (
	back = choose(func(c *column) bool { return c.is(comesBack) })

	bringBack = `INSERT INTO pawl_job (state, ` + back.names() + `)
	SELECT 2, ` + back.names() + `
	FROM pawl_job_archive
	WHERE namespace = ? AND id = ?`
)

// revive brings a dead or cancelled job back from the archive. Its run number
// goes on from where it was (P2); attempts and lost runs are forgiven, and so
// is a deadline that has passed, for the retry would end at once by it.
func (t *Transition) revive(id job.ID) (store.Change, error) {
	hash, err := t.archivedKey(id)
	if err != nil {
		return 0, err
	}
	if hash != nil {
		holder, taken, err := t.uniqueHolder(hash)
		if err != nil {
			return 0, err
		}
		if taken && holder != id {
			return store.Duplicate, nil
		}
		if err := t.takeUnique(hash, id); err != nil {
			return 0, err
		}
	}
	if err := t.On(bringBack).Blob(id[:]).Exec(); err != nil {
		return 0, err
	}
	err = t.Query(forgive).Int(t.Now).Int(t.Now).Int(t.Namespace).Blob(id[:]).Exec()
	if err != nil {
		return 0, err
	}
	return store.Changed, t.dropArchived(id)
}
