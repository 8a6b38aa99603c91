package keeper

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// gates is what the keeper knows of limits on jobs.
type gates struct {
	store store.Gatekeeper // nil where the store has no gates
	mu    sync.Mutex
	done  *job.GateRules // by which all jobs were put right
	once  bool
}

// idle reports whether there is nothing to put right: no limit holds, and none has held
// since the last round.
func (g *gates) idle(rules *job.GateRules) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.once && rules == nil && g.done == nil
}

func (g *gates) did(rules *job.GateRules) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done, g.once = rules, true
}

// gatesRound moves jobs that wait behind gates of limits that are gone, and forgets what
// gates need not remember.
func (k *Keeper) gatesRound(ctx context.Context, limit int) (report store.UpkeepReport, err error) {
	rules := k.config.Gates()
	reply, err := k.gates.store.Regate(ctx, rules, limit)
	if err != nil {
		return report, fmt.Errorf("put jobs behind their gates: %w", err)
	}
	report.Add("jobs moved", reply.Moved)
	report.Add("gates forgotten", reply.Forgotten)
	if report.More, report.Pause = reply.More, breath; !reply.More {
		k.gates.did(rules)
	}
	return report, nil
}
