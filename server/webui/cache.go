package webui

import (
	"context"
	"errors"
	"sync"
	"time"
)

// cache keeps what was read, so that many viewers cost as much as one. What takes long to read is kept for longer, so that what is read
// again and again takes 1 % of a core, all of it together: a share for each thing would be as many percent as there are things.
type cache struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// entry is one answer. done is closed when it is there.
type entry struct {
	done     chan struct{}
	value    any
	err      error
	until    time.Time // zero while it is being read
	dear     bool      // it is kept for longer than was asked for
	measured bool      // it is of metrics: nothing that people do changes it
	before   any       // the answer before it, while it is being read; nil: there is none
}

const (
	maxEntries = 256
	restTimes  = 100 // what is dear costs no more than a hundredth of the time, all of it together
)

// Most that something is kept for, even if it cost more than that: what stands now, and sums of an hour and more. A busy machine makes a
// look slow once, and must not make it old.
const (
	mostRest     = 30 * time.Second
	mostMeasured = 10 * time.Minute
)

func newCache() *cache { return &cache{entries: map[string]*entry{}} }

// clear forgets what an action may have changed.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, one := range c.entries {
		if !one.measured {
			delete(c.entries, key)
		}
	}
}

// staleFor is how long an old answer is given while a newer one is being read, so that nobody waits for it.
const staleFor = 20 * time.Second

// cached is what read answers, or has answered less than ttl ago. Who asks while it is being read gets the same, or the answer before
// if that is not too old. It outlives who asked first, and is given readTime.
func cached[T any](v *view, key string, ttl time.Duration, read func(context.Context) (T, error)) (T, error) {
	one, before := find(v, key, ttl, false, read)
	if old, ok := before.(T); ok {
		return old, nil
	}
	return answer[T](v, one, nil)
}

// measured is cached for metrics, which may be hundreds of thousands of rows: a page does not wait long for them, its stream not at all.
// Both get errLater then, and the stream asks again.
func measured[T any](v *view, key string, ttl time.Duration, read func(context.Context) (T, error)) (T, error) {
	return patiently(v, key, ttl, true, read)
}

// patiently waits for an answer until the patience of its page is over, and then says errLater.
func patiently[T any](v *view, key string, ttl time.Duration, measured bool, read func(context.Context) (T, error)) (T, error) {
	one, before := find(v, key, ttl, measured, read)
	if old, ok := before.(T); ok {
		return old, nil
	}
	patience := time.NewTimer(time.Until(v.patient))
	defer patience.Stop()
	return answer[T](v, one, patience.C)
}

// errLater is what a page gets of what is still being read.
var errLater = errors.New("it is still being read")

// heldBack reports whether a stream has to ask again, and sends nothing until then: what the page shows is older, but whole.
func (v *view) heldBack(err error) bool { return v.live && errors.Is(err, errLater) }

// find is the entry of a key, begun where there is none or it is over, and the answer before it where that will do.
func find[T any](v *view, key string, ttl time.Duration, measured bool, read func(context.Context) (T, error)) (one *entry, before any) {
	c := v.app.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	one = c.entries[key]
	if now := time.Now(); one == nil || !one.until.IsZero() && !now.Before(one.until) {
		old := one
		c.makeRoom()
		one = &entry{done: make(chan struct{}), measured: measured}
		c.entries[key] = one
		if old != nil {
			if one.dear = old.dear; old.err == nil && now.Sub(old.until) < staleFor {
				one.before = old.value
			}
		}
		detached := context.WithoutCancel(v.ctx) // here: who asked goes on, perhaps with another context
		go func() {
			ctx, cancel := context.WithTimeout(detached, readTime)
			defer cancel()
			began := time.Now()
			value, err := read(ctx)
			took := time.Since(began)
			if of, ok := any(value).(costly); ok && err == nil {
				took = of.cost()
			}
			c.mu.Lock()
			one.value, one.err, one.before = value, err, nil
			rest := c.rest(key, took, measured)
			one.until, one.dear = time.Now().Add(max(ttl, rest)), rest > ttl
			c.mu.Unlock()
			close(one.done)
		}()
	}
	return one, one.before
}

// costly is an answer that knows better than the clock what it cost: parts of it were read at the same time.
type costly interface{ cost() time.Duration }

// rest is how long an answer that took so long is kept: restTimes as long for itself, and as much for each other that is dear and
// watched. It is under mu.
func (c *cache) rest(key string, took time.Duration, measured bool) time.Duration {
	share, now := 1, time.Now()
	for other, one := range c.entries {
		if other != key && one.dear && (one.until.IsZero() || now.Before(one.until.Add(staleFor))) {
			share++
		}
	}
	most := mostRest
	if measured {
		most = mostMeasured
	}
	return min(time.Duration(share)*restTimes*took, most)
}

// answer waits for an entry, not longer than who asked, nor than until later tells.
func answer[T any](v *view, one *entry, later <-chan time.Time) (T, error) {
	var none T
	select {
	case <-one.done:
		value, _ := one.value.(T)
		return value, one.err
	default:
	}
	select {
	case <-one.done:
	case <-later:
		return none, errLater
	case <-v.ctx.Done():
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
