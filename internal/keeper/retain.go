package keeper

import (
	"context"
	"fmt"
)

// ExpireOnce ends jobs that are not running and past their deadline. Running
// ones are the business of whoever runs them.
func (k *Keeper) ExpireOnce(ctx context.Context) (int, error) {
	n, err := k.store.Expire(ctx, k.config.Limit)
	if err != nil {
		return n, fmt.Errorf("expire: %w", err)
	}
	return n, nil
}

// PurgeOnce removes rows whose time is over.
func (k *Keeper) PurgeOnce(ctx context.Context) (int, error) {
	n, err := k.store.Purge(ctx, k.config.Limit)
	if err != nil {
		return n, fmt.Errorf("purge: %w", err)
	}
	return n, nil
}
