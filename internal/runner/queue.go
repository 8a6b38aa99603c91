package runner

import (
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/job"
)

// queue is what the runner knows of one queue. Guarded by Runner.mu, except for
// its name, by, and the policy.
type queue struct {
	name    string
	by      job.By
	policy  atomic.Pointer[policy] // read without a lock when a handler has returned
	setting QueueConfig
	removed bool // it is not served any more (queues.go)

	slots   int  // here; of a queue with a total, its portion (split.go)
	running int  // tasks that take a slot
	first   list // placeFirst
	ready   list // placeReady

	coolUntil time.Time // its cool-down, as the store last told

	looked time.Time // last look
	look   time.Time // next look, when nothing else asks for one sooner
	heard  time.Time // last hint from outside
	later  int       // looks after it
	unseen unseen    // what waits as far as claims have not seen
	mean   float64   // of the time a handler takes, in ns; 0 before the first
	bytes  float64   // of the payload of a job, mean
}

// policy is what a queue says about how its runs end.
type policy struct {
	keep    job.Keep
	backoff job.BackoffFunc
	// coolDown is by what its cool-downs grow; nil means the defaults.
	coolDown *job.BackoffSettings
}

// set takes over how the queue is worked on from now on. Slots of a total only
// shrink here: what a process may use of it, beats say.
func (q *queue) set(c QueueConfig) {
	p := &policy{keep: c.Keep.WithDefaults(), backoff: c.Backoff, coolDown: c.CoolDown}
	if p.backoff == nil {
		p.backoff = defaultBackoff
	}
	q.policy.Store(p)
	switch {
	case c.Total == 0:
		q.slots = c.Workers
	case q.setting.Total == 0:
		q.slots = 0
	default:
		q.slots = min(q.slots, c.Workers, c.Total)
	}
	q.setting = c
}

// Slots is how many jobs of a queue may run here at once: its workers, or its
// portion of a total.
func (r *Runner) Slots(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.named[name]; q != nil {
		return q.slots
	}
	return 0
}

// Bounds of what is claimed ahead.
const (
	minPrefetch   = 128
	maxPrefetch   = 1_000
	prefetchBytes = 16 << 20 // payload of prefetched jobs, by the mean
	minHorizon    = 5 * time.Millisecond
	maxHorizon    = 100 * time.Millisecond
)

// prefetch is how many jobs to hold beyond those that run: as many as the slots
// will use up while a claim is on its way, judged by how long handlers
// take. Long handlers get none: a job is never kept from an idle process
// for longer than a claim takes.
func (q *queue) prefetch(horizon time.Duration) int {
	limit := q.setting.Prefetch
	switch {
	case limit < 0 || q.mean == 0:
		return 0
	case limit == 0:
		limit = min(max(8*q.slots, minPrefetch), maxPrefetch)
	}
	if q.bytes > 0 {
		limit = min(limit, int(prefetchBytes/q.bytes))
	}
	horizon = min(max(horizon, minHorizon), maxHorizon)
	used := float64(q.slots) * float64(horizon) / q.mean
	return int(min(used, float64(limit)))
}

// towards moves a mean towards the next value; 0 is that of none.
func towards(mean, next float64) float64 {
	if mean == 0 {
		return next
	}
	return mean + (next-mean)/8
}
