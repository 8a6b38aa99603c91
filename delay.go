package pawl

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/supervise"
)

// delayService wakes the round that appends events when they are due, whenever some were
// accepted: one of them may be due before what it sleeps for.
func (e *Engine) delayService(r *runner.Runner) supervise.Service {
	return supervise.Loop("delay hints", func(ctx context.Context) error {
		hints := e.hub.Subscribe()
		defer hints.Close()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-hints.C():
			}
			if !hints.Take(nil).Delay {
				continue
			}
			r.Wake(keeper.Tick(keeper.DelayedRound))
			if r.Member().Leads() {
				continue
			}
			pause := time.NewTimer(keeper.LateBy) // the others only stand in for the leader
			select {
			case <-ctx.Done():
				pause.Stop()
				return nil
			case <-pause.C:
			}
		}
	})
}
