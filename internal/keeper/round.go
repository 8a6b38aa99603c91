package keeper

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Round is one kind of upkeep. It is bounded, and safe to run in every process at
// once and by hand: whoever comes second finds nothing left.
type Round struct {
	Name   string
	Period time.Duration
	Do     func(ctx context.Context, limit int) (store.UpkeepReport, error)
	// Due reads off a look whether there is something to do; nil where Do is itself
	// no more than a question while there is not.
	Due func(store.Due) bool
}

// Rounds are the upkeep of a namespace, in the order in which it is best done by hand.
func (k *Keeper) Rounds() []Round {
	rounds := []Round{
		{Name: rescueRound, Period: k.config.Rescue, Do: k.rescueRound},
		{Name: expireRound, Period: k.config.Expire, Do: k.expireRound, Due: func(d store.Due) bool { return d.Expire }},
		{Name: purgeRound, Period: k.config.Purge, Do: k.purgeRound, Due: func(d store.Due) bool { return d.Purge }},
		{Name: rollUpRound, Period: k.config.RollUp, Do: k.rollUpRound, Due: func(d store.Due) bool { return d.RollUp }},
		{Name: unservedRound, Period: k.config.Report, Do: k.unservedRound},
	}
	if k.intents != nil {
		rounds = slices.Insert(rounds, 2, Round{
			Name: intentsRound, Period: k.config.Intents, Do: k.intentsRound, Due: func(d store.Due) bool { return d.Intents },
		})
	}
	if k.gates.store != nil {
		rounds = append(rounds, Round{
			Name: gatesRound, Period: k.config.Regate, Do: k.gatesRound, Due: func(d store.Due) bool { return d.Gates },
		})
	}
	if k.groups != nil {
		rounds = append(rounds, Round{Name: membersRound, Period: k.config.Members, Do: k.membersRound})
	}
	if k.operations != nil {
		at := slices.IndexFunc(rounds, func(r Round) bool { return r.Name == purgeRound })
		rounds = slices.Insert(rounds, at, Round{
			Name: OperationsRound, Period: k.config.Operations, Do: k.operationsRound, Due: func(d store.Due) bool { return d.Operations },
		})
	}
	if k.trims.store != nil {
		rounds = append(rounds, Round{Name: trimRound, Period: k.config.Trim, Do: k.trim, Due: k.trimDue})
	}
	if k.delays != nil {
		rounds = append(rounds, Round{Name: DelayedRound, Period: k.config.Delayed, Do: k.delayedRound})
	}
	for i, r := range rounds {
		do := r.Do
		rounds[i].Do = func(ctx context.Context, limit int) (store.UpkeepReport, error) {
			begin := time.Now()
			report, err := do(ctx, limit)
			report.Round, report.Took = r.Name, time.Since(begin)
			return report, err
		}
	}
	return rounds
}

// Run does one round by hand, without a look before it.
func (k *Keeper) Run(ctx context.Context, name string) (store.UpkeepReport, error) {
	var names []string
	for _, r := range k.Rounds() {
		if r.Name == name {
			return r.Do(ctx, k.config.Limit)
		}
		names = append(names, r.Name)
	}
	return store.UpkeepReport{}, job.Invalid("round", name, fmt.Sprintf("must be one of %v", names))
}

func (k *Keeper) rescueRound(ctx context.Context, limit int) (report store.UpkeepReport, err error) {
	rescued, err := k.RescueOnce(ctx, limit)
	report.Add("workers lost", rescued.Lost)
	report.Add("jobs waiting again", rescued.Waiting)
	report.Add("jobs dead", rescued.RescueReply.Dead)
	report.Add("jobs cancelled", rescued.Cancelled)
	report.Add("members of groups lost", rescued.Members)
	report.More = rescued.Full || rescued.Others || rescued.Left || rescued.Members == store.MaxLoseMembers
	if rescued.Left && !rescued.Full && !rescued.Others {
		report.Pause = leftFor
	}
	return report, err
}

func (k *Keeper) expireRound(ctx context.Context, limit int) (report store.UpkeepReport, err error) {
	expired, err := k.ExpireOnce(ctx, limit)
	report.Add("jobs dead", expired.Dead)
	report.Add("jobs cancelled", expired.Cancelled)
	report.More, report.Pause = expired.Total() >= limit, breath
	return report, err
}

func (k *Keeper) purgeRound(ctx context.Context, limit int) (report store.UpkeepReport, err error) {
	n, err := k.PurgeOnce(ctx, limit)
	report.Add("rows removed", n)
	report.More, report.Pause = n >= limit, breath
	return report, err
}

func (k *Keeper) unservedRound(ctx context.Context, _ int) (report store.UpkeepReport, err error) {
	list, err := k.ReportOnce(ctx)
	jobs := 0
	for _, u := range list {
		jobs += u.Jobs
	}
	report.Add("jobs that nobody takes", jobs)
	return report, err
}
