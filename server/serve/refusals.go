package serve

import (
	"log/slog"
	"sync"
	"time"
)

const (
	refusalEvery  = time.Minute
	maxRefusals   = 1000 // addresses
	otherRefusals = "(others)"
)

// refusals logs refused logins: the first of an address at once, those of the next minute
// as a number with the first after it.
type refusals struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	list  map[string]*refusal
	swept time.Time
}

type refusal struct {
	logged time.Time
	more   int
}

func newRefusals(log *slog.Logger, now func() time.Time) *refusals {
	return &refusals{log: log, now: now, list: map[string]*refusal{}}
}

// tell counts one. Nothing of what was presented is logged.
func (f *refusals) tell(address, path, why string) {
	now := f.now()
	f.mu.Lock()
	if f.list[address] == nil && len(f.list) >= maxRefusals {
		f.forget(now)
		if len(f.list) >= maxRefusals {
			address = otherRefusals
		}
	}
	one := f.list[address]
	if one == nil {
		one = &refusal{}
		f.list[address] = one
	}
	if !one.logged.IsZero() && now.Sub(one.logged) < refusalEvery {
		one.more++
		f.mu.Unlock()
		return
	}
	more := one.more
	one.logged, one.more = now, 0
	f.mu.Unlock()
	f.log.Warn("a login was refused", "address", address, "path", path, "why", why, "more", more)
}

// forget drops those whose interval is over, not more than once a second: it walks all.
func (f *refusals) forget(now time.Time) {
	if now.Sub(f.swept) < time.Second {
		return
	}
	f.swept = now
	for key, one := range f.list {
		if now.Sub(one.logged) >= refusalEvery {
			delete(f.list, key)
		}
	}
}
