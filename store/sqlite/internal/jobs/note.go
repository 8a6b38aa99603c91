package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Note keeps progress and log lines of runs that go on.
func (t *Transition) Note(w job.WorkerID, notes []store.Note) ([]job.Verdict, error) {
	verdicts := make([]job.Verdict, len(notes))
	for i, n := range notes {
		held, err := t.owned(w, n.ID, n.Run)
		if err != nil {
			return nil, err
		}
		if held == nil {
			verdicts[i] = job.Stale
			continue
		}
		if n.Begun {
			if err := t.MarkBegun(w, []store.RunRef{n.RunRef}); err != nil {
				return nil, err
			}
		}
		if n.Progress != nil {
			if err := t.setProgress(n.ID, *n.Progress); err != nil {
				return nil, err
			}
		}
		if len(n.Logs) > 0 {
			if err := t.appendLogs(held, n.Logs); err != nil {
				return nil, err
			}
		}
		verdicts[i] = job.Applied
	}
	return verdicts, nil
}

// markBegun is for a run that its worker owns (P2), by primary key.
const markBegun = `UPDATE pawl_job
	SET begun = 1, started = ?
	WHERE namespace = ? AND id = ? AND state = 3 AND run = ? AND worker = ? AND begun = 0`

// MarkBegun notes that handlers have begun; runs that are not the worker's own
// any more are passed over, since their next beat or finish says so.
func (t *Transition) MarkBegun(w job.WorkerID, refs []store.RunRef) error {
	for _, r := range refs {
		err := t.Query(markBegun).Int(t.Now).Int(t.Namespace).Blob(r.ID[:]).Int(r.Run).Int(int64(w)).Exec()
		if err != nil {
			return err
		}
	}
	return nil
}
