package sqlite

import (
	"maps"
	"sync"

	"github.com/pawlwork/pawl/job"
)

// claims remembers, per worker of this process, which claims were answered and
// where looks that met their bound go on. It only saves work: what is lost with
// the process costs a look from the front.
type claims struct {
	mu      sync.Mutex
	workers map[job.WorkerID]*claimer
}

type claimer struct {
	answered int64
	places   places
}

// answered reports whether a claim was answered before. The worker's row knows
// only of claims that took something; an empty one writes nothing.
func (c *claims) answered(w job.WorkerID, seq int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.workers[w]
	return k != nil && seq <= k.answered
}

// places returns a copy of the worker's places for a claim to work on.
func (c *claims) places(w job.WorkerID) places {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.workers[w]; k != nil && len(k.places) > 0 {
		return maps.Clone(k.places)
	}
	return places{}
}

// keep stores what a committed claim leaves behind.
func (c *claims) keep(w job.WorkerID, seq int64, p places) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workers == nil {
		c.workers = map[job.WorkerID]*claimer{}
	}
	k := c.workers[w]
	if k == nil {
		k = &claimer{}
		c.workers[w] = k
	}
	k.answered, k.places = max(k.answered, seq), p
}

// forget drops a worker that will not claim again.
func (c *claims) forget(w job.WorkerID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.workers, w)
}

// places is where the looks of a worker go on, by queue and priority.
type places map[laneName]place

type laneName struct {
	queue    string
	priority int
}

type place struct {
	at    position
	since int64 // when the sweep began in front
}

// sweepAgain is how long looks go on behind rows that were skipped, before one
// starts in front again: what was skipped for want of a free slot is seen then.
const sweepAgain = 5_000_000 // microseconds

// leave keeps a lane's position when a long row of skipped jobs lies before it;
// otherwise the next look starts in front again.
func (p places) leave(name laneName, l *lane, now int64) {
	bounded := l.skipped >= l.bound
	resumed := l.place.at != (position{})
	if l.passed == (position{}) || !bounded && !(resumed && now-l.place.since < sweepAgain) {
		delete(p, name)
		return
	}
	since := l.place.since
	if !resumed {
		since = now
	}
	p[name] = place{at: l.passed, since: since}
}
