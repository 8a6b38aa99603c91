package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Cancel ends jobs that are not running and asks running ones to stop.
func (t *Transition) Cancel(ids []job.ID, op store.Operator) ([]store.Change, error) {
	return t.Operate(store.Verb{Name: store.VerbCancel}, ids, op, nil)
}

func (t *Transition) cancelOne(id job.ID) (store.Change, error) {
	s, ended, err := t.find(id)
	if err != nil {
		return 0, err
	}
	answer := store.CancelAnswer(s.of(), ended)
	switch answer {
	case store.Asked:
		err = t.askToCancel(id)
	case store.Changed:
		_, err = t.move(s, job.Cancel(&s.Subject, t.Keep(s.Queue)))
	}
	return answer, err
}

// find looks for a job where it is live, then for its final state in the archive.
func (t *Transition) find(id job.ID) (live *subject, ended job.State, err error) {
	if live, err = t.live(id); live != nil || err != nil {
		return live, 0, err
	}
	state, err := t.On(finalState).Blob(id[:]).One()
	return nil, job.State(state), err
}

// What finds and asks a job, by primary keys.
const (
	finalState = `SELECT state
	FROM pawl_job_archive
	WHERE namespace = ? AND id = ?`

	askRunning = `UPDATE pawl_job
	SET cancel = 1
	WHERE namespace = ? AND id = ? AND state = 3`
)

func (t *Transition) askToCancel(id job.ID) error { return t.On(askRunning).Blob(id[:]).Exec() }

// askedRuns lists the runs of a worker that were asked to cancel.
//   - pawl_job_cancel, which is empty when nobody cancels.
const askedRuns = `SELECT id, run
	FROM pawl_job INDEXED BY pawl_job_cancel
	WHERE namespace = ? AND cancel = 1 AND worker = ? AND state = 3`

// Cancels lists the runs of a worker that were asked to cancel.
func Cancels(c *lite.Snapshot, w job.WorkerID) ([]store.RunRef, error) {
	var refs []store.RunRef
	q := c.On(askedRuns).Int(int64(w))
	for q.Step() {
		refs = append(refs, store.RunRef{ID: q.ColID(0), Run: q.ColInt(1)})
	}
	return refs, q.Done()
}
