package keeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Rescued is what one round of losing and rescuing did.
type Rescued struct {
	store.Rescued
	Lost int  // workers declared lost
	Full bool // there may be more to rescue
}

// RescueOnce declares workers lost and takes back the jobs of those that are.
// It declares nobody lost unless its own beats have succeeded for a whole
// lost-after period: after an outage of the store every worker looks lost to the
// one that comes back first. It rescues all the same: who is lost is lost.
func (k *Keeper) RescueOnce(ctx context.Context) (Rescued, error) {
	var report Rescued
	var faults []error
	if worker, beat, steady := k.config.Steady(); worker != 0 && steady >= k.config.LostAfter {
		n, err := k.store.Lose(ctx, worker, beat)
		if err != nil && !errors.Is(err, job.ErrWorkerLost) { // then it is for others to judge
			faults = append(faults, fmt.Errorf("declare workers lost: %w", err))
		}
		report.Lost = n
	}
	rescued, err := k.store.Rescue(ctx, k.config.Limit)
	if err != nil {
		faults = append(faults, fmt.Errorf("rescue: %w", err))
	}
	report.Rescued = rescued
	report.Full = rescued.Total() >= k.config.Limit
	if report.Lost > 0 || rescued.Total() > 0 {
		k.log.WarnContext(ctx, "workers were lost", "workers", report.Lost,
			"jobs waiting again", rescued.Waiting, "dead", rescued.Dead, "cancelled", rescued.Cancelled)
	}
	if rescued.Waiting > 0 && k.config.Hub != nil {
		k.config.Hub.Ready(store.Hint{})
	}
	return report, errors.Join(faults...)
}
