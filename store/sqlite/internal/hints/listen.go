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
const heads = `SELECT registry, revision
	FROM pawl_namespace
	WHERE id = ?`

// Listen tells of commits made on other connections than its own until ctx ends
// or the store closes. It cannot tell those of other processes from those of
// this one, nor say what changed in jobs; a look that finds nothing is cheap. It also
// tells when the settings have changed, and while splits is set, the registry.
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
	members := int64(-1) // the version of the registry; told first when somebody splits by it
	_, settings, err := readHeads(c, namespace)
	if err != nil {
		return d.Explain("listen on", err)
	}
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
		registry, revision, err := readHeads(c, namespace)
		if err != nil {
			return d.Explain("listen on", err)
		}
		if revision != settings {
			settings = revision
			hear(store.Hint{Subject: store.SubjectSetting})
		}
		if splits.Load() && registry != members {
			members = registry
			hear(store.Hint{Subject: store.SubjectMembers})
		}
	}
}

// readHeads reads the version of the registry and the revision of the settings.
func readHeads(c *lite.Conn, namespace int64) (registry, revision int64, err error) {
	q := c.Query(heads).Int(namespace)
	if q.Step() {
		registry, revision = q.ColInt(0), q.ColInt(1)
	}
	return registry, revision, q.Done()
}
