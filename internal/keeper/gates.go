package keeper

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/store"
)

// gates is what the keeper knows of limits on jobs.
type gates struct {
	store store.Gatekeeper // nil where the store has no gates
}

// gatesRound moves jobs that wait behind gates of limits that are gone, and forgets what
// gates need not remember.
func (k *Keeper) gatesRound(ctx context.Context, limit int) (report store.UpkeepReport, err error) {
	reply, err := k.gates.store.Regate(ctx, k.config.Gates(), limit)
	if err != nil {
		return report, fmt.Errorf("put jobs behind their gates: %w", err)
	}
	report.Add("jobs moved", reply.Moved)
	report.Add("gates forgotten", reply.Forgotten)
	report.More, report.Pause = reply.More, breath
	return report, nil
}
