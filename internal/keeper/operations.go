package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlwork/pawl/store"
)

// OperationsRound is the name of the round that does what operators have begun. Who
// begins an operation wakes it.
const OperationsRound = "operations"

// operationsAtOnce is how many operations one round advances, a page each.
const operationsAtOnce = 16

// Advanced is what one round of operations did.
type Advanced struct {
	Pages, Jobs int
	Ended       int
	// Open says that an operation which this process has advanced has more to do, in
	// Pause. One that somebody else advances is left to them.
	Open  bool
	Pause time.Duration
}

// AdvanceOnce takes the next page of operations whose time has come. The time is
// the operation's own, kept in the store: however many processes look, its pace is
// the same. Who came first goes on with it; the others find that it is not due.
func (k *Keeper) AdvanceOnce(ctx context.Context) (did Advanced, err error) {
	list, err := k.operations.Operations(ctx, store.OperationPage{Open: true, Limit: operationsAtOnce})
	if err != nil {
		return did, fmt.Errorf("list operations: %w", err)
	}
	var faults []error
	for i := range list {
		r, err := k.operations.AdvanceOperation(ctx, list[i].ID)
		if err != nil {
			faults = append(faults, fmt.Errorf("operation %s: %w", list[i].ID, err))
		}
		if !r.Did {
			continue
		}
		o := &r.Operation
		did.Pages++
		did.Jobs += int(o.Counts.Looked - list[i].Counts.Looked)
		k.tell(o, len(r.Asked) > 0)
		if o.State != store.OperationOpen {
			did.Ended++
			k.log.LogAttrs(ctx, slog.LevelInfo, "a bulk operation has ended", slog.String("operation", o.ID.String()), slog.String("verb", string(o.Verb.Name)),
				slog.String("by", o.By), slog.String("state", o.State.String()), slog.Int64("looked", o.Counts.Looked), slog.Int64("changed", o.Counts.Changed))
			continue
		}
		if pause := max(o.Next.Sub(r.Now), breath); !did.Open || pause < did.Pause {
			did.Open, did.Pause = true, pause
		}
	}
	return did, errors.Join(faults...)
}

// tell lets this process know of what a page made ready, or asked to stop.
func (k *Keeper) tell(o *store.Operation, asked bool) {
	if k.config.Hub == nil {
		return
	}
	switch o.Verb.Name {
	case store.VerbRetry, store.VerbRequeue, store.VerbPriority:
		k.config.Hub.Ready(store.Hint{Subject: store.SubjectQueue})
	}
	if asked {
		k.config.Hub.Ready(store.Hint{Subject: store.SubjectJob})
	}
}

func (k *Keeper) operationsRound(ctx context.Context, _ int) (report store.UpkeepReport, err error) {
	did, err := k.AdvanceOnce(ctx)
	report.Add("pages of operations done", did.Pages)
	report.Add("jobs looked at", did.Jobs)
	report.Add("operations ended", did.Ended)
	report.More, report.Pause = did.Open, did.Pause
	return report, err
}
