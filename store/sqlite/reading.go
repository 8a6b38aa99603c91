package sqlite

import (
	"sync"
	"time"
)

// reading is something that reads from the file and has not ended: until then
// the log keeps what was written since it began.
type reading struct {
	what  string
	at    callsite
	since time.Time
}

// readings are those of this process.
type readings struct {
	mu   sync.Mutex
	open map[*reading]struct{}
}

// begin notes that something reads; end, that it no longer does.
func (r *readings) begin(x *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*reading]struct{}{}
	}
	r.open[x] = struct{}{}
}

func (r *readings) end(x *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, x)
}

// oldest is the one that began first, nil when nothing reads.
func (r *readings) oldest() (first *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.open {
		if first == nil || x.since.Before(first.since) {
			first = x
		}
	}
	return first
}

// newReading is one that begins now, for the caller's caller.
func newReading(what string, c *clock) *reading {
	return &reading{what: what, at: here(), since: c.instant()}
}
