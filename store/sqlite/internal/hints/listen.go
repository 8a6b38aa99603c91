package hints

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// listenEvery is how often the file is asked whether another connection has
// committed: one page read from memory, without a lock.
const listenEvery = 50 * time.Millisecond

// By primary key.
const registryVersion = `SELECT registry
	FROM pawl_namespace
	WHERE id = ?`

// Listen tells of commits made on other connections than its own until ctx ends
// or the store closes. It cannot tell those of other processes from those of
// this one, nor say what changed; a look that finds nothing is cheap. While
// splits is set it also tells when the registry has changed.
func Listen(
	ctx context.Context, d *lite.Database, namespace int64, splits *atomic.Bool, closing <-chan struct{}, hear func(store.Hint),
) error {
	c, err := d.Connect(ctx, lite.SmallCache)
	if err != nil {
		return d.Explain("listen on", err)
	}
	defer c.Close()
	version := func() (int64, error) { return c.Query("PRAGMA data_version").One() }
	last, err := version()
	if err != nil {
		return d.Explain("listen on", err)
	}
	members := int64(-1) // the version of the registry; nobody asks for it where no worker has totals
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-closing:
			return store.ErrClosed
		case <-tick.C:
		}
		now, err := version()
		if err != nil {
			return d.Explain("listen on", err)
		}
		if now == last {
			continue
		}
		last = now
		hear(store.Hint{Subject: store.SubjectQueue})
		hear(store.Hint{Subject: store.SubjectJob})
		if !splits.Load() {
			continue
		}
		registry, err := c.Query(registryVersion).Int(namespace).One()
		if err != nil {
			return d.Explain("listen on", err)
		}
		if registry != members {
			members = registry
			hear(store.Hint{Subject: store.SubjectMembers})
		}
	}
}
