package keeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlwork/pawl/internal/boot"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Rescued is what one round of losing and rescuing did.
type Rescued struct {
	store.RescueReply
	Lost    int  // workers declared lost
	Members int  // of groups, that were theirs
	Dead    int  // those of them that were proven dead
	Full    bool // there may be more to rescue
	Others  bool // some were lost, and others have not been looked at
	Left    bool // the store left out some that are proven dead: their last call is still under way
}

// RescueOnce declares workers lost and takes back the jobs of those that are.
//
//  1. For silence: nobody, unless its own beats have succeeded throughout the
//     lost-after period of the silent one. After an outage of the store every
//     worker looks lost to the one that comes back first.
//  2. For proof of death: a worker of this machine whose process is no more, at
//     once, also by a process that has only just started. A service that
//     is killed and restarted does not wait for its own lease.
//
// It rescues all the same when it declares nobody: who is lost is lost.
func (k *Keeper) RescueOnce(ctx context.Context, limit int) (Rescued, error) {
	var report Rescued
	var faults []error
	orphans := true
	if worker, beat, steady := k.config.Steady(); worker != 0 {
		lost, err := k.store.MarkLost(ctx, store.MarkLostRequest{By: worker, Beat: beat, Steady: steady, Machine: k.config.Self.Machine})
		if err != nil && !errors.Is(err, job.ErrWorkerLost) { // then it is for others to judge
			faults = append(faults, fmt.Errorf("declare workers lost: %w", err))
		}
		orphans, report.Others = err != nil || lost.Orphans, lost.More
		var dead int
		dead, report.Left, err = k.declareDead(ctx, lost.Neighbours)
		if err != nil {
			faults = append(faults, fmt.Errorf("declare dead workers lost: %w", err))
		}
		report.Lost, report.Dead = lost.Workers+dead, dead
	}
	if !orphans && report.Lost == 0 {
		return report, errors.Join(faults...) // as nearly always: it was one question
	}
	rescued, err := k.store.Rescue(ctx, limit)
	if err != nil {
		faults = append(faults, fmt.Errorf("rescue: %w", err))
	}
	report.RescueReply = rescued
	if report.Members, err = k.LoseMembersOnce(ctx); err != nil {
		faults = append(faults, err)
	}
	report.Full = rescued.Total() >= limit
	if report.Lost > 0 || rescued.Total() > 0 {
		k.log.WarnContext(ctx, "workers were lost", "workers", report.Lost, "proven dead", report.Dead,
			"jobs waiting again", rescued.Waiting, "dead", rescued.Dead, "cancelled", rescued.Cancelled)
	}
	k.logDeaths(ctx, rescued.Dead, rescued.Deaths)
	k.config.Died(rescued.Deaths)
	if rescued.Waiting > 0 && k.config.Hub != nil {
		k.config.Hub.Ready(store.Hint{Subject: store.SubjectQueue})
	}
	return report, errors.Join(faults...)
}

// declareDead declares those neighbours lost that are proven dead, and says
// whether some are left.
func (k *Keeper) declareDead(ctx context.Context, neighbours []store.Neighbour) (n int, left bool, err error) {
	var dead []job.WorkerID
	for _, n := range neighbours {
		if n.Dead || k.config.Dead(boot.Identity{Machine: n.Machine, Process: n.Process, Start: n.Start}) {
			dead = append(dead, n.ID)
		}
	}
	if len(dead) == 0 {
		return 0, false, nil
	}
	n, err = k.store.MarkDead(ctx, dead)
	return n, n < len(dead), err
}
