package batch

import (
	"sync"
	"time"
)

// segment holds the keys of one part of the key space behind one lock. No segment waits for another: what they share is
// the atomic counts of totals and turns.
type segment[K comparable, In, Out any] struct {
	owner *Batcher[K, In, Out]

	mu        sync.Mutex
	keys      map[K]*keyQueue[K, In, Out]
	most      int // the largest the map has been since it was made
	deadlines deadlines[K, In, Out]
	alarm     *time.Timer
	rings     time.Duration // when alarm is set to ring; 0 when it is not
	closing   bool
	empty     chan struct{} // closed when closing and no key is left

	// lately follows the size of the batches: at once when they grow, by halves when they shrink. See run.few.
	lately int

	hovering int                // goroutines that are about to end, and look at handed before they do
	handed   []*activeBatch[K, In, Out] // started batches for them

	idleQueues []*keyQueue[K, In, Out]
	idleRuns   []*activeBatch[K, In, Out]
}

const (
	mostIdle     = 64   // structures kept for reuse per segment and kind
	mostEmptyMap = 1024 // a map that has held more is not kept when it is empty: maps do not shrink
)

func newShard[K comparable, In, Out any](owner *Batcher[K, In, Out]) *segment[K, In, Out] {
	return &segment[K, In, Out]{owner: owner, keys: make(map[K]*keyQueue[K, In, Out]), empty: make(chan struct{})}
}

// admit accepts an item for a key, and starts a batch if that makes one ready.
func (s *segment[K, In, Out]) admit(key K, it *entry[In, Out]) (*keyQueue[K, In, Out], error) {
	if s.closing {
		return nil, s.owner.closed
	}
	if s.owner.stamp {
		it.arrived = s.owner.now() // under the lock: a line is in order of time
	}
	q, known := s.keys[key]
	if !known {
		q = s.newQueue(key)
	}
	if err := q.admit(it); err != nil {
		return nil, err // a key that is full is not idle: nothing to drop
	}
	if q.waiting.count > 0 { // otherwise it joined a batch that has started
		q.pump()
	}
	return q, nil
}

func (s *segment[K, In, Out]) newQueue(key K) *keyQueue[K, In, Out] {
	var q *keyQueue[K, In, Out]
	if last := len(s.idleQueues) - 1; last >= 0 {
		q, s.idleQueues = s.idleQueues[last], s.idleQueues[:last]
	} else {
		q = &keyQueue[K, In, Out]{segment: s, position: -1}
	}
	q.key = key
	s.keys[key] = q
	s.most = max(s.most, len(s.keys))
	return q
}

// dropIdle forgets a key without items. Nothing refers to its queue afterwards, except a place that is on its way from
// turns: the generation tells it that it comes too late.
func (s *segment[K, In, Out]) dropIdle(q *keyQueue[K, In, Out]) {
	if q.running > 0 || q.waiting.count > 0 {
		return
	}
	if q.lined {
		s.owner.turns.leave(q)
	}
	delete(s.keys, q.key)
	var none K
	q.key, q.lined = none, false
	q.generation++
	if len(s.idleQueues) < mostIdle {
		s.idleQueues = append(s.idleQueues, q)
	}
	if len(s.keys) > 0 {
		return
	}
	if s.most > mostEmptyMap {
		s.keys, s.most = make(map[K]*keyQueue[K, In, Out]), 0
	}
	if s.closing {
		close(s.empty)
	}
}

func (s *segment[K, In, Out]) newRun(q *keyQueue[K, In, Out]) *activeBatch[K, In, Out] {
	var r *activeBatch[K, In, Out]
	if last := len(s.idleRuns) - 1; last >= 0 {
		r, s.idleRuns = s.idleRuns[last], s.idleRuns[:last]
	} else {
		r = &activeBatch[K, In, Out]{owner: s.owner}
		r.carry = r.carryOn
	}
	r.queue = q
	return r
}

func (s *segment[K, In, Out]) reuse(r *activeBatch[K, In, Out]) {
	*r = activeBatch[K, In, Out]{owner: r.owner, carry: r.carry}
	if len(s.idleRuns) < mostIdle {
		s.idleRuns = append(s.idleRuns, r)
	}
}

// launch lets a goroutine carry a started batch: one that hovers, or a new one.
func (s *segment[K, In, Out]) launch(r *activeBatch[K, In, Out]) {
	if len(s.handed) < s.hovering {
		s.handed = append(s.handed, r)
		return
	}
	go r.carry()
}
