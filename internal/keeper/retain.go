package keeper

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/pawlwork/pawl/store"
)

// ExpireOnce ends jobs that are not running and past their deadline. Running
// ones are the business of whoever runs them.
func (k *Keeper) ExpireOnce(ctx context.Context, limit int) (store.ExpireReply, error) {
	expired, err := k.store.Expire(ctx, limit)
	if err != nil {
		return expired, fmt.Errorf("expire: %w", err)
	}
	k.logDeaths(ctx, expired.Dead, expired.Deaths)
	k.config.Died(expired.Deaths)
	return expired, nil
}

// logDeaths writes a line for each job that upkeep has ended as dead (J28), with
// the words and fields of one that died in its handler. Finish hooks are not
// called: they are told of the runs of this process, and this ended none.
func (k *Keeper) logDeaths(ctx context.Context, all int, named []store.Death) {
	for _, d := range named {
		k.log.LogAttrs(ctx, slog.LevelError, "a job is dead",
			slog.String("kind", d.Kind), slog.String("queue", d.Queue), slog.String("job", d.ID.String()), slog.Int64("run", d.Run),
			slog.Int("attempt", d.Attempt), slog.Int("of", d.MaxAttempts), slog.String("reason", d.Reason))
	}
	if more := all - len(named); more > 0 {
		k.log.LogAttrs(ctx, slog.LevelError, "more jobs are dead than one round names", slog.Int("jobs", more))
	}
}

// PurgeOnce removes rows whose time is over.
func (k *Keeper) PurgeOnce(ctx context.Context, limit int) (int, error) {
	n, err := k.store.Purge(ctx, limit)
	if err != nil {
		return n, fmt.Errorf("purge: %w", err)
	}
	return n, nil
}
