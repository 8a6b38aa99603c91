package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Cancel ends jobs that are not running and asks running ones to stop.
func (s *Store) Cancel(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return s.operate(ctx, ids, op, "cancel", (*transition).cancel)
}

// Delete removes jobs that are not running, and asks running ones to cancel. Of
// jobs that have said a lot the newest lines go first, in transactions of their
// own: nobody waits for all of them (P10).
func (s *Store) Delete(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	for more := len(ids) > 0; more; {
		err := s.write(ctx, len(ids), func(t *transition) (err error) {
			more, err = t.shorten(ids, store.DropLines)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return s.operate(ctx, ids, op, "delete", (*transition).remove)
}

// operate applies an operator's verb to each id in one transaction, with the
// audit entries of what it changed.
func (s *Store) operate(ctx context.Context, ids []job.ID, op store.Operator, action string, verb func(*transition, job.ID) (store.Change, error)) ([]store.Change, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var changes []store.Change
	err := s.write(ctx, len(ids), func(t *transition) error {
		changes = make([]store.Change, len(ids))
		for i, id := range ids {
			var err error
			if changes[i], err = verb(t, id); err != nil {
				return err
			}
			if changes[i] == store.Changed || changes[i] == store.Asked {
				if err := t.audit(op, action, id.String()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// shorten removes lines of jobs that are to be deleted, so many at most that as
// many may be left, and reports whether there are more to remove.
func (t *transition) shorten(ids []job.ID, most int64) (more bool, err error) {
	total, left := int64(0), most
	for _, id := range ids {
		s, live, err := t.live(id)
		if err != nil {
			return false, err
		}
		table := "pawl_job"
		switch {
		case live && s.state == job.Running:
			continue
		case !live:
			table = "pawl_job_archive"
			if s.logs, err = t.On("SELECT logs FROM pawl_job_archive WHERE namespace = ? AND id = ?").Blob(id[:]).One(); err != nil {
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

func (t *transition) cancel(id job.ID) (store.Change, error) {
	s, ok, err := t.live(id)
	if err != nil {
		return 0, err
	}
	switch {
	case !ok:
		return t.endedOr(id, store.NotFound)
	case s.state == job.Running:
		return store.Asked, t.askToCancel(id)
	case !job.CanMove(s.state, job.Cancelled):
		return store.Active, nil
	}
	return store.Changed, t.move(&s, job.End{ID: id, To: job.Cancelled, Reason: "cancelled", Keep: t.keep(s.queue)}, false)
}

func (t *transition) askToCancel(id job.ID) error {
	return t.On("UPDATE pawl_job SET cancel = 1 WHERE namespace = ? AND id = ? AND state = 3").Blob(id[:]).Exec()
}

// endedOr answers for a job that is not live.
func (t *transition) endedOr(id job.ID, otherwise store.Change) (store.Change, error) {
	ok, err := t.On("SELECT 1 FROM pawl_job_archive WHERE namespace = ? AND id = ?").Blob(id[:]).Found()
	if ok {
		return store.Ended, err
	}
	return otherwise, err
}

// remove deletes a job with its logs and unique key. Its tombstone stays, so
// that a resend under way does not bring it back.
func (t *transition) remove(id job.ID) (store.Change, error) {
	s, ok, err := t.live(id)
	if err != nil {
		return 0, err
	}
	if ok {
		if s.state == job.Running {
			return store.Asked, t.askToCancel(id)
		}
		if err := t.dropLive(id); err != nil {
			return 0, err
		}
	} else {
		q := t.On("SELECT logs, unique_hash FROM pawl_job_archive WHERE namespace = ? AND id = ?").Blob(id[:])
		if !q.Step() {
			return store.NotFound, q.Done()
		}
		s = subject{id: id, logs: q.ColInt(0), hash: q.ColBlob(1)}
		if err := q.Done(); err != nil {
			return 0, err
		}
		if err := t.dropArchived(id); err != nil {
			return 0, err
		}
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
	return store.Changed, t.On("INSERT OR REPLACE INTO pawl_tombstone (namespace, id, expires) VALUES (?, ?, ?)").
		Blob(id[:]).Int(lite.Later(t.Now, job.KeepTombstone)).Exec()
}
