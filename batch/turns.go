package batch

import (
	"sync"
	"sync/atomic"
)

// turns shares Options.TotalConcurrency between the keys: a place for each running batch, and a line of keys that
// have a ready batch but found no place. A key stands in the line once and gets one place per turn, so that a busy key
// delays another by one batch and not by its backlog.
//
// While places last, taking and giving one back is a single atomic operation; the lock is for the line.
type turns[K comparable, In, Out any] struct {
	free    atomic.Int64 // places nobody holds
	waiting atomic.Int64 // keys in the line, and keys about to join it

	mu         sync.Mutex
	head, tail *keyQueue[K, In, Out]
}

// take gets a place for q, or puts q at the end of the line. The lock of q's segment is held.
func (t *turns[K, In, Out]) take(q *keyQueue[K, In, Out]) bool {
	if t.waiting.Load() == 0 && t.takeFree() {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Counted as waiting before the last look at free: pass frees first and looks at waiting second, so one of the two
	// sees the other, and no key waits beside a free place.
	t.waiting.Add(1)
	if t.head == nil && t.takeFree() {
		t.waiting.Add(-1)
		return true
	}
	q.lined = true
	q.turn = turn[K, In, Out]{standing: true, prev: t.tail, generation: q.generation}
	if t.tail == nil {
		t.head = q
	} else {
		t.tail.turn.next = q
	}
	t.tail = q
	return false
}

func (t *turns[K, In, Out]) takeFree() bool {
	for {
		free := t.free.Load()
		if free == 0 {
			return false
		}
		if t.free.CompareAndSwap(free, free-1) {
			return true
		}
	}
}

// pass gives up a place. If a key waits for one, pass returns it with the generation that stood in the line, and the
// place is that key's. No segment's lock is held: the key may belong to any segment.
func (t *turns[K, In, Out]) pass() (*keyQueue[K, In, Out], uint64) {
	if t.waiting.Load() == 0 {
		t.free.Add(1)
		if t.waiting.Load() == 0 {
			return nil, 0
		}
		if !t.takeFree() {
			return nil, 0 // whoever took it passes it on in turn
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.head
	if q == nil {
		// The key that was about to join is behind this lock, and looks at free once more.
		t.free.Add(1)
		return nil, 0
	}
	t.unlink(q)
	return q, q.turn.generation
}

// leave takes q out of the line, unless a place is on its way to it already. The lock of q's segment is held.
func (t *turns[K, In, Out]) leave(q *keyQueue[K, In, Out]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.turn.standing {
		t.unlink(q)
	}
}

func (t *turns[K, In, Out]) unlink(q *keyQueue[K, In, Out]) {
	if q.turn.prev == nil {
		t.head = q.turn.next
	} else {
		q.turn.prev.turn.next = q.turn.next
	}
	if q.turn.next == nil {
		t.tail = q.turn.prev
	} else {
		q.turn.next.turn.prev = q.turn.prev
	}
	q.turn.standing, q.turn.prev, q.turn.next = false, nil, nil
	t.waiting.Add(-1)
}

// turn is a key's stand in the line. The lock of turns guards it.
type turn[K comparable, In, Out any] struct {
	standing   bool
	prev, next *keyQueue[K, In, Out]
	generation uint64
}
