package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// Cancel ends jobs that are not running and asks running ones to stop.
func (t *Transition) Cancel(ids []job.ID, op store.Operator) ([]store.Change, error) {
	return t.operate(ids, op, "cancel", (*Transition).cancelOne)
}

// operate applies an operator's verb to each id, with the audit entries of what
// it changed.
func (t *Transition) operate(ids []job.ID, op store.Operator, action string, verb func(*Transition, job.ID) (store.Change, error)) ([]store.Change, error) {
	changes := make([]store.Change, len(ids))
	for i, id := range ids {
		var err error
		if changes[i], err = verb(t, id); err != nil {
			return nil, err
		}
		if changes[i] == store.Changed || changes[i] == store.Asked {
			if err := settings.Audit(t.Session, op, action, id.String()); err != nil {
				return nil, err
			}
		}
	}
	return changes, nil
}

func (t *Transition) cancelOne(id job.ID) (store.Change, error) {
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
	return store.Changed, t.move(&s, job.End{ID: id, To: job.Cancelled, Reason: "cancelled", Keep: t.Keep(s.queue)}, false)
}

func (t *Transition) askToCancel(id job.ID) error {
	return t.On("UPDATE pawl_job SET cancel = 1 WHERE namespace = ? AND id = ? AND state = 3").Blob(id[:]).Exec()
}

// endedOr answers for a job that is not live.
func (t *Transition) endedOr(id job.ID, otherwise store.Change) (store.Change, error) {
	ok, err := t.On("SELECT 1 FROM pawl_job_archive WHERE namespace = ? AND id = ?").Blob(id[:]).Found()
	if ok {
		return store.Ended, err
	}
	return otherwise, err
}

// Cancels reads pawl_job_cancel, which is empty when nobody cancels.
func Cancels(c *lite.Snapshot, w job.WorkerID) ([]store.RunRef, error) {
	var refs []store.RunRef
	q := c.Query("SELECT id, run FROM pawl_job INDEXED BY pawl_job_cancel WHERE namespace = ? AND cancel = 1 AND worker = ? AND state = 3").Int(c.Namespace).Int(int64(w))
	for q.Step() {
		refs = append(refs, store.RunRef{ID: q.ColID(0), Run: q.ColInt(1)})
	}
	return refs, q.Done()
}
