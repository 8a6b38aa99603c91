package keeper

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/store"
)

// RollUpOnce merges what processes measured, over processes and into hours.
func (k *Keeper) RollUpOnce(ctx context.Context, limit int) (store.RollUpReply, error) {
	if k.metrics == nil {
		return store.RollUpReply{}, nil
	}
	reply, err := k.metrics.RollUp(ctx, limit)
	if err != nil {
		return reply, fmt.Errorf("roll up metrics: %w", err)
	}
	return reply, nil
}

func (k *Keeper) rollUpRound(ctx context.Context, limit int) (report store.UpkeepReport, err error) {
	reply, err := k.RollUpOnce(ctx, limit)
	report.Add("metrics rolled up", reply.Merged)
	report.More, report.Pause = reply.More, breath
	return report, err
}
