package workers

import (
	"sync"

	"github.com/pawlwork/pawl/job"
)

// A tour is a place in the registry. The registry may be long, and every process looks
// after it; so none looks at all of it: each look takes the next few behind the place
// where the last one ended, and the first come behind the last. In a small registry that
// is all of it, each time.
type tour struct {
	mu    sync.Mutex
	at    job.WorkerID
	begun bool
}

// How many a look takes.
const (
	latePart = 32 // live workers, to see who is late
	gapPart  = 16 // rows of the registry, to see whether a run names a number between them
)

// from is the place, which is one of the caller's before the first look. Processes that
// begin behind their own numbers look at different parts.
func (r *tour) from(first job.WorkerID) job.WorkerID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun {
		r.at, r.begun = first, true
	}
	return r.at
}

func (r *tour) reached(at job.WorkerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.begun = at, true
}

// Gaps is where the look for runs of numbers that are not registered goes on. A look
// that found one leaves the place where it is, for the rescue.
type Gaps struct{ tour }

// From is the place.
func (g *Gaps) From() job.WorkerID { return g.from(0) }

// Reached moves it on.
func (g *Gaps) Reached(at job.WorkerID) { g.reached(at) }
