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
		held, ok, err := t.held(w, e.ID, e.Run)
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
