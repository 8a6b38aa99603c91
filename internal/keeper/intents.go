package keeper

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/pawlwork/pawl/store"
)

// ApplyOnce applies intents that users' transactions have left and nobody has
// applied yet: their process died, or was not told of the commit. One that has
// failed often is reported, and so is each further failure.
func (k *Keeper) ApplyOnce(ctx context.Context, limit int) (store.IntentsReply, error) {
	reply, err := k.intents.ApplyIntents(ctx, limit)
	for i := range reply.PutOff {
		if p := &reply.PutOff[i]; p.Failures >= store.IntentTrouble {
			k.log.LogAttrs(ctx, slog.LevelError, "an intent of a transaction cannot be applied",
				slog.String("intent", p.ID.String()), slog.Int("kind", int(p.Kind)), slog.String("subject", p.Subject), slog.String("why", p.Why()))
		}
	}
	if err != nil {
		return reply, fmt.Errorf("apply intents: %w", err)
	}
	return reply, nil
}

func (k *Keeper) intentsRound(ctx context.Context, limit int) (report store.UpkeepReport, err error) {
	reply, err := k.ApplyOnce(ctx, limit)
	report.Add("intents applied", reply.Applied)
	report.Add("intents put off", len(reply.PutOff))
	report.More, report.Pause = reply.More, breath
	return report, err
}
