package sqlite

import (
	"context"
	"errors"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// Register enters one boot of one process and numbers it.
func (s *Store) Register(ctx context.Context, w store.Worker) (id job.WorkerID, err error) {
	boot, err := workers.Encode(&w)
	if err != nil {
		return 0, err
	}
	if len(w.Totals) > 0 {
		s.splits.Store(true)
	}
	err = s.write(ctx, 1, func(t *jobs.Transition) (err error) {
		id, err = boot.Register(&t.Session, s.alive)
		return err
	})
	if err != nil {
		s.alive.Free(s.namespace, id)
		return 0, err
	}
	s.came(id)
	return id, nil
}

// Beat renews the worker's lease.
func (s *Store) Beat(ctx context.Context, b store.Beat) (store.BeatReply, error) {
	if b.Serves != nil && len(b.Serves.Totals) > 0 {
		s.splits.Store(true)
	}
	if b.Serves != nil {
		s.crews.Forget(b.Worker)
	}
	reply, met := s.beatWith(ctx, b)
	if !met {
		var err error
		reply, err = ask(ctx, s, 1+len(b.Begun), func(t *jobs.Transition) (store.BeatReply, error) { return beat(t, &b, &s.crews) })
		if errors.Is(err, job.ErrWorkerLost) {
			s.gone(b.Worker)
		}
		if err != nil {
			return reply, err
		}
	}
	s.crews.Note(&b, &reply)
	return reply, nil
}

// Cancels lists the worker's runs that were asked to cancel.
func (s *Store) Cancels(ctx context.Context, w job.WorkerID) ([]store.RunRef, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]store.RunRef, error) { return jobs.Cancels(c, w) })
}

// ReportRuns reports the runs a worker holds. What is leased to it beyond them was
// lost on the way, in the answer of a claim, and goes back.
func (s *Store) ReportRuns(ctx context.Context, w job.WorkerID, refs []store.RunRef) (store.ReportReply, error) {
	return ask(ctx, s, len(refs)+1, func(t *jobs.Transition) (store.ReportReply, error) { return t.ReportRuns(w, refs) })
}

// Alone asks whether a run may be the one for which a worker empties itself.
func (s *Store) Alone(ctx context.Context, w job.WorkerID, run store.RunRef) (bool, error) {
	return ask(ctx, s, 1, func(t *jobs.Transition) (bool, error) {
		if owned, err := t.Owns(w, run); err != nil || !owned {
			return false, err
		}
		return workers.Alone(&t.Session, run)
	})
}

// Deregister removes a worker.
func (s *Store) Deregister(ctx context.Context, w job.WorkerID) error {
	err := s.write(ctx, 1, func(t *jobs.Transition) error {
		holds, err := t.Holds(w)
		if err != nil {
			return err
		}
		return workers.Deregister(&t.Session, w, holds)
	})
	if err == nil {
		s.claims.Forget(w)
		s.alive.Free(s.namespace, w)
		s.gone(w)
	}
	return err
}
