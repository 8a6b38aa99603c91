package lite

import (
	"sync"
	"time"
)

// Reading is something that reads from the file and has not ended: until then
// the log keeps what was written since it began.
type Reading struct {
	What  string
	At    CallSite
	Since time.Time
}

// Readings are those of this process.
type Readings struct {
	mu   sync.Mutex
	open map[*Reading]struct{}
}

// Begin notes that something reads; end, that it no longer does.
func (r *Readings) Begin(x *Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*Reading]struct{}{}
	}
	r.open[x] = struct{}{}
}

// End is the other half of Begin.
func (r *Readings) End(x *Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, x)
}

// oldest is the one that began first, nil when nothing reads.
func (r *Readings) oldest() (first *Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.open {
		if first == nil || x.Since.Before(first.Since) {
			first = x
		}
	}
	return first
}

// NewReading is one that begins now, for the caller's caller.
func NewReading(what string, c *Clock) *Reading {
	return &Reading{What: what, At: Here(), Since: c.Instant()}
}
