package keeper

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/store"
)

// LoseMembersOnce takes members of groups for dead whose worker is lost or absent. A rescue
// does it at once; the round finds those that it had to leave, because a user's transaction
// still acknowledged something of theirs.
func (k *Keeper) LoseMembersOnce(ctx context.Context) (int, error) {
	if k.groups == nil {
		return 0, nil
	}
	n, err := k.groups.LoseMembers(ctx, store.LoseMembers{})
	if err != nil {
		return n, fmt.Errorf("take members of groups for dead: %w", err)
	}
	if n > 0 {
		k.log.WarnContext(ctx, "members of groups were lost: what they worked on goes to others", "members", n)
		if k.config.Hub != nil {
			k.config.Hub.Ready(store.Hint{Subject: store.SubjectGroup})
		}
	}
	return n, nil
}

func (k *Keeper) membersRound(ctx context.Context, _ int) (report store.UpkeepReport, err error) {
	n, err := k.LoseMembersOnce(ctx)
	report.Add("members of groups lost", n)
	report.More, report.Pause = n == store.MaxLoseMembers, breath
	return report, err
}
