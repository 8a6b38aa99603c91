package webui

import (
	"context"
	"sync"
	"time"
)

// cache keeps what was read, so that many viewers cost as much as one. What takes long to read is kept for longer: restTimes as long as
// it took at least.
type cache struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// entry is one answer. done is closed when it is there.
type entry struct {
	done   chan struct{}
	value  any
	err    error
	until  time.Time // zero while it is being read
	before any       // the answer before it, while it is being read; nil: there is none
}

const (
	maxEntries = 256
	restTimes  = 100 // so that what people watch takes 1 % of a core for each thing that is read
)

func newCache() *cache { return &cache{entries: map[string]*entry{}} }

// clear forgets everything: something was changed.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = map[string]*entry{}
}

// staleFor is how long an old answer is given while a newer one is being read, so that nobody waits for it.
const staleFor = 20 * time.Second

// cached is what read answers, or has answered less than ttl ago. Who asks while it is being read gets the same, or the answer before
// if that is not too old. It outlives who asked first, and is given readTime.
func cached[T any](v *view, key string, ttl time.Duration, read func(context.Context) (T, error)) (T, error) {
	c := v.app.cache
	c.mu.Lock()
	one := c.entries[key]
	if now := time.Now(); one == nil || !one.until.IsZero() && !now.Before(one.until) {
		old := one
		c.makeRoom()
		one = &entry{done: make(chan struct{})}
		if c.entries[key] = one; old != nil && old.err == nil && now.Sub(old.until) < staleFor {
			one.before = old.value
		}
		detached := context.WithoutCancel(v.ctx) // here: who asked goes on, perhaps with another context
		go func() {
			ctx, cancel := context.WithTimeout(detached, readTime)
			defer cancel()
			began := time.Now()
			value, err := read(ctx)
			c.mu.Lock()
			one.value, one.err, one.before = value, err, nil
			one.until = time.Now().Add(max(ttl, restTimes*time.Since(began)))
			c.mu.Unlock()
			close(one.done)
		}()
	}
	before, old := one.before.(T)
	c.mu.Unlock()
	if old {
		return before, nil
	}
	select {
	case <-one.done:
	case <-v.ctx.Done():
		var none T
		return none, v.ctx.Err()
	}
	value, _ := one.value.(T)
	return value, one.err
}

// makeRoom drops what is over, and everything where that is not enough. It is under mu.
func (c *cache) makeRoom() {
	if len(c.entries) < maxEntries {
		return
	}
	now := time.Now()
	for key, one := range c.entries {
		if !one.until.IsZero() && !now.Before(one.until) {
			delete(c.entries, key)
		}
	}
	if len(c.entries) >= maxEntries {
		c.entries = map[string]*entry{}
	}
}
