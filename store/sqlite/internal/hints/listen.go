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
const namespaceNow = `SELECT registry, revision
	FROM pawl_namespace
	WHERE id = ?`

// Listen tells of commits made on other connections than its own until ctx ends
// or the store closes. It cannot tell those of other processes from those of
// this one, nor say what changed; a look that finds nothing is cheap. Only of the
// settings it tells when their revision has changed, and while splits is set of the
// registry.
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
	registry, revision := int64(-1), int64(-1)
	look := func() (members, setting bool, err error) {
		q := c.Query(namespaceNow).Int(namespace)
		if q.Step() {
			members, setting = q.ColInt(0) != registry, q.ColInt(1) != revision
			registry, revision = q.ColInt(0), q.ColInt(1)
		}
		return members, setting, q.Done()
	}
	if _, _, err := look(); err != nil {
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
		members, setting, err := look()
		if err != nil {
			return d.Explain("listen on", err)
		}
		if setting {
			hear(store.Hint{Subject: store.SubjectSetting})
		}
		if members && splits.Load() {
			hear(store.Hint{Subject: store.SubjectMembers})
		}
	}
}
