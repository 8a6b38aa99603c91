package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Leaving says that the process stops: it goes on to beat, and once it is lost it
// does not register anew.
func (m *Member) Leaving() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaving = true
}

// Leave gives back whatever is still leased to the worker, free of charge, and
// removes it from the registry. A store that does not listen to its context is not
// waited for. No beat may be under way: it might register anew.
func (m *Member) Leave(atMost time.Duration) error {
	worker := m.Worker()
	if worker == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), atMost*9/10)
	defer cancel()
	left := make(chan error, 1)
	go func() {
		_, err := m.store.ReportRuns(ctx, worker, nil)
		if err == nil {
			err = m.store.Deregister(ctx, worker)
		}
		left <- err
	}()
	giveUp := time.NewTimer(atMost)
	defer giveUp.Stop()
	var err error
	select {
	case err = <-left:
	case <-giveUp.C:
		err = context.Cause(ctx)
	}
	if errors.Is(err, job.ErrWorkerLost) {
		return nil // nothing is leased to it any more
	}
	if err != nil {
		return fmt.Errorf("deregister worker %d: %w", worker, err)
	}
	return nil
}

// Close ends what would call the host later.
func (m *Member) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
}
