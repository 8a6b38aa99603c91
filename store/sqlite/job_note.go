package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Note keeps progress and log lines of runs that go on.
func (s *Store) Note(ctx context.Context, w job.WorkerID, notes []store.Note) (verdicts []job.Verdict, err error) {
	if len(notes) == 0 {
		return nil, nil
	}
	err = s.write(ctx, rowsOfNotes(notes), func(t *transition) (err error) {
		verdicts, err = t.note(w, notes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

func (t *transition) note(w job.WorkerID, notes []store.Note) ([]job.Verdict, error) {
	verdicts := make([]job.Verdict, len(notes))
	for i, n := range notes {
		held, ok, err := t.owned(w, n.ID, n.Run)
		if err != nil {
			return nil, err
		}
		if !ok {
			verdicts[i] = job.Stale
			continue
		}
		if n.Begun {
			if err := t.markBegun(w, []store.RunRef{n.RunRef}); err != nil {
				return nil, err
			}
		}
		if n.Progress != nil {
			if err := t.setProgress(n.ID, *n.Progress); err != nil {
				return nil, err
			}
		}
		if len(n.Logs) > 0 {
			if err := t.appendLogs(&held, n.Logs); err != nil {
				return nil, err
			}
		}
		verdicts[i] = job.Applied
	}
	return verdicts, nil
}
