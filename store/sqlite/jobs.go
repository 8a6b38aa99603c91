package sqlite

import (
	"context"
	"errors"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/claims"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

// Enqueue accepts drafts, all or none.
func (s *Store) Enqueue(ctx context.Context, drafts []job.Draft) ([]job.Receipt, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	receipts, err := ask(ctx, s, len(drafts), func(t *jobs.Transition) ([]job.Receipt, error) { return t.Enqueue(drafts) })
	job.SettleHandOvers(drafts, unknown(err))
	s.noteGates(drafts)
	return receipts, err
}

// unknown is what became of the hand-overs of a call that nothing else is known of.
func unknown(err error) job.HandedOver {
	return job.HandedOver{Unknown: errors.Is(err, job.ErrOutcomeUnknown)}
}

// noteGates tells claims of drafts that wait behind gates.
func (s *Store) noteGates(drafts []job.Draft) {
	for i := range drafts {
		if d := &drafts[i]; d.Gate != 0 {
			s.claims.Turns.Note(d.Queue, d.Gate, d.Kind, d.Key, nil)
		}
	}
}

// Claim leases ready jobs to a worker.
func (s *Store) Claim(ctx context.Context, c store.Claim) (store.ClaimReply, error) {
	rows := len(c.Begun)
	for _, q := range c.Queues {
		rows += q.Limit
	}
	repeat := s.claims.Answered(c.Worker, c.Seq)
	var from claims.Places
	claimed, err := ask(ctx, s, rows, func(t *jobs.Transition) (store.ClaimReply, error) {
		from = s.claims.Places(c.Worker)
		return claims.Claim(t, &c, repeat, from, &s.claims)
	})
	if errors.Is(err, job.ErrWorkerLost) {
		s.claims.Forget(c.Worker)
	}
	if err != nil {
		return store.ClaimReply{}, err
	}
	s.claims.Keep(c.Worker, c.Seq, from)
	return claimed, nil
}

// Finish ends runs, each fenced by its worker and run number.
func (s *Store) Finish(ctx context.Context, w job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	if len(ends) == 0 {
		return nil, nil
	}
	verdicts, err := ask(ctx, s, jobs.RowsOfEnds(ends), func(t *jobs.Transition) ([]job.Verdict, error) { return t.Finish(w, ends) })
	for i := range ends {
		if then := ends[i].Then; then.Some() {
			job.SettleHandOvers(then.Drafts, unknown(err))
			s.noteGates(then.Drafts)
		}
	}
	return verdicts, err
}

// Note keeps progress and log lines of runs that go on.
func (s *Store) Note(ctx context.Context, w job.WorkerID, notes []store.Note) ([]job.Verdict, error) {
	if len(notes) == 0 {
		return nil, nil
	}
	return ask(ctx, s, jobs.RowsOfNotes(notes), func(t *jobs.Transition) ([]job.Verdict, error) { return t.Note(w, notes) })
}

// Cancel ends jobs that are not running and asks running ones to stop.
func (s *Store) Cancel(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return ask(ctx, s, len(ids), func(t *jobs.Transition) ([]store.Change, error) { return t.Cancel(ids, op) })
}

// Retry makes dead, cancelled or parked jobs wait again with a fresh attempt
// budget, and scheduled ones due at once.
func (s *Store) Retry(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	defer s.claims.Turns.Drop() // they may have gates that nobody knows
	return ask(ctx, s, len(ids), func(t *jobs.Transition) ([]store.Change, error) { return t.Retry(ids, op) })
}

// Delete removes jobs that are not running, and asks running ones to cancel. Of
// jobs that have said a lot the newest lines go first, in transactions of their
// own: nobody waits for all of them (P10).
func (s *Store) Delete(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if err := s.shorten(ctx, ids); err != nil {
		return nil, err
	}
	return ask(ctx, s, len(ids), func(t *jobs.Transition) ([]store.Change, error) { return t.Delete(ids, op) })
}

func (s *Store) shorten(ctx context.Context, ids []job.ID) error {
	for more := true; more; {
		var err error
		more, err = ask(ctx, s, len(ids), func(t *jobs.Transition) (bool, error) { return t.Shorten(ids, store.DropLines) })
		if err != nil {
			return err
		}
	}
	return nil
}
