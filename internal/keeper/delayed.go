package keeper

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/store"
)

// DelayedRound is the name of the round that appends events when they are due. Who hears of
// one that was accepted wakes it.
const DelayedRound = "delayed"

// LateBy is how long those who do not lead leave what is due to the leader.
const LateBy = 4500 * time.Millisecond

// delayedRound appends events whose time has come, and sleeps until the next one is due: it
// does not poll. In between a hint wakes it, and in case that one was missed its period.
func (k *Keeper) delayedRound(ctx context.Context, limit int) (report store.UpkeepReport, err error) {
	begin := time.Now()
	reply, err := k.delays.AppendDue(ctx, limit)
	if err != nil {
		return report, fmt.Errorf("append what is due: %w", err)
	}
	report.Add("events appended", reply.Appended)
	if reply.Appended > 0 && k.config.Hub != nil {
		k.config.Hub.Ready(store.Hint{Subject: store.SubjectTopic})
	}
	if reply.Next.IsZero() {
		return report, nil
	}
	until := max(reply.Next.Sub(reply.Now)-time.Since(begin), 0)
	if !k.config.Leads() && until > 0 {
		until += LateBy
	}
	if until < k.config.Delayed {
		report.More, report.Pause = true, until
	}
	return report, nil
}
