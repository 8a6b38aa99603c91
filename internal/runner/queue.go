package runner

import (
	"time"

	"github.com/pawlwork/pawl/job"
)

// queue is what the runner knows of one queue. Guarded by Runner.mu, except
// for what New sets.
type queue struct {
	name    string
	keep    job.Keep
	backoff job.BackoffFunc
	by      job.By
	setting QueueConfig

	slots   int  // here; of a queue with a total, its portion (split.go)
	running int  // tasks that take a slot
	first   list // placeFirst
	ready   list // placeReady

	looked time.Time // last look
	look   time.Time // next look, when nothing else asks for one sooner
	mean   float64   // of the time a handler takes, in ns; 0 before the first
	bytes  float64   // of the payload of a job, mean
}

// Slots is how many jobs of a queue may run here at once: its workers, or its
// portion of a total.
func (r *Runner) Slots(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.queues {
		if q.name == name {
			return q.slots
		}
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
