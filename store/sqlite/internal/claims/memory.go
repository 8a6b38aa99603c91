package claims

import (
	"maps"
	"sync"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/turns"
)

// Memory remembers, per worker of this process, which claims were answered and
// where looks that met their bound go on. It only saves work: what is lost with
// the process costs a look from the front.
type Memory struct {
	Turns turns.Turns[struct{}] // of gates

	mu      sync.Mutex
	version int64 // of the file, as far as others have changed it
	regated RegatePlace
	workers map[job.WorkerID]*claimer
}

type claimer struct {
	answered int64
	places   Places
}

// opened takes over what a claim tells of gates.
func (c *Memory) opened(claim *store.Claim) {
	if claim.Gates == nil {
		return
	}
	c.Turns.Under(claim.Gates.Print())
	if c.Turns.Open(claim.Opened...); len(claim.Opened) > 0 && claim.Gates.Overlap() {
		c.Turns.OpenFull()
	}
}

// changed notes the version of the file as the writer's connection sees it: commits of
// its own do not change that.
func (c *Memory) changed(version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version != version {
		c.version = version
		c.Turns.Stale("")
	}
}

// Answered reports whether a claim was answered before. The worker's row knows
// only of claims that took something; an empty one writes nothing.
func (c *Memory) Answered(w job.WorkerID, seq int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.workers[w]
	return k != nil && seq <= k.answered
}

// Places returns a copy of the worker's places for a claim to work on.
func (c *Memory) Places(w job.WorkerID) Places {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.workers[w]; k != nil && len(k.places) > 0 {
		return maps.Clone(k.places)
	}
	return Places{}
}

// Keep stores what a committed claim leaves behind.
func (c *Memory) Keep(w job.WorkerID, seq int64, p Places) {
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

// Regated is where Regate goes on.
func (c *Memory) Regated() RegatePlace {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.regated
}

// KeepRegated stores where a committed call has ended.
func (c *Memory) KeepRegated(at RegatePlace) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.regated = at
}

// Forget drops a worker that will not claim again.
func (c *Memory) Forget(w job.WorkerID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.workers, w)
}

// Places is where the looks of a worker go on, by queue, gate and priority.
type Places map[laneName]front

type laneName struct {
	queue    string
	gate     int64
	priority int
}

type front struct {
	at    position
	since int64 // when the sweep began in front
}

// SweepAgain is how long looks go on behind rows that were skipped, before one
// starts in front again: what was skipped for want of a free slot is seen then.
const SweepAgain = 5_000_000 // microseconds

// leave keeps a lane's position when a long row of skipped jobs lies before it;
// otherwise the next look starts in front again.
func (p Places) leave(name laneName, l *lane, now int64) {
	bounded := l.skipped >= l.bound
	resumed := l.place.at != (position{})
	if l.passed == (position{}) || !bounded && !(resumed && now-l.place.since < SweepAgain) {
		delete(p, name)
		return
	}
	since := l.place.since
	if !resumed {
		since = now
	}
	p[name] = front{at: l.passed, since: since}
}
