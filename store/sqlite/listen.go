package sqlite

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// listenEvery is how often the file is asked whether another connection has
// committed: one page read from memory, without a lock.
const listenEvery = 50 * time.Millisecond

// Listen tells of commits made by other processes. It cannot tell them from
// those of this process, nor say what changed; a look that finds nothing is
// cheap. A store in memory has no others.
func (s *Store) Listen(ctx context.Context, hear func(store.Hint)) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.file.Memory {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.closing:
			return store.ErrClosed
		}
	}
	c, err := s.file.Connect(ctx, lite.SmallCache)
	if err != nil {
		return s.file.Explain("listen on", err)
	}
	defer c.Close()
	version := func() (int64, error) { return c.Query("PRAGMA data_version").One() }
	last, err := version()
	if err != nil {
		return s.file.Explain("listen on", err)
	}
	members := int64(-1) // the version of the registry; nobody asks for it where no worker has totals
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.closing:
			return store.ErrClosed
		case <-tick.C:
		}
		now, err := version()
		if err != nil {
			return s.file.Explain("listen on", err)
		}
		if now == last {
			continue
		}
		last = now
		hear(store.Hint{})
		if !s.splits.Load() {
			continue
		}
		registry, err := c.Query("SELECT registry FROM pawl_namespace WHERE id = ?").Int(s.namespace).One()
		if err != nil {
			return s.file.Explain("listen on", err)
		}
		if registry != members {
			members = registry
			hear(store.Hint{Members: true})
		}
	}
}
