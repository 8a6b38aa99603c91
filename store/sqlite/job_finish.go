package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
)

// Finish ends runs, each fenced by its worker and run number.
func (s *Store) Finish(ctx context.Context, w job.WorkerID, ends []job.End) (verdicts []job.Verdict, err error) {
	if len(ends) == 0 {
		return nil, nil
	}
	err = s.write(ctx, len(ends), func(t *transition) (err error) {
		verdicts, err = t.finish(w, ends)
		return err
	})
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

func (t *transition) finish(w job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	verdicts := make([]job.Verdict, len(ends))
	for i := range ends {
		e := &ends[i]
		if short(e) {
			done, err := t.finishShort(w, e)
			if err != nil {
				return nil, err
			}
			if done {
				verdicts[i] = job.Applied
				continue
			}
		}
		held, ok, err := t.owned(w, e.ID, e.Run)
		if err != nil {
			return nil, err
		}
		if !ok {
			verdicts[i] = job.Stale
			continue
		}
		if err := t.move(&held, job.Settle(*e, held.cancel), false); err != nil {
			return nil, err
		}
		verdicts[i] = job.Applied
	}
	return verdicts, nil
}

// short reports whether an end is the common one: done, kept, and nothing else
// to write down.
func short(e *job.End) bool {
	return e.To == job.Done && e.Keep.WithDefaults().Done >= 0 && !e.Burn && !e.Snooze && e.Failure == nil && e.Progress == nil && len(e.Logs) == 0
}

// finishShort ends a run in two statements instead of three, by putting the
// fence into the first. False means that it was not that simple; then nothing
// was changed.
func (t *transition) finishShort(w job.WorkerID, e *job.End) (bool, error) {
	n, err := t.intoArchive(archiveOwned, e).int(e.Run).int(int64(w)).changes()
	if err != nil || n == 0 {
		return false, err
	}
	return true, t.dropLive(e.ID)
}
