package pawl

import (
	"sync"
	"time"
)

// batchSlots are the jobs of an engine that wait in batches, by queue. Each of
// them holds a slot: when all slots of a queue wait, no more can come, and what
// waits is started instead of waiting for a size that it cannot reach.
type batchSlots struct {
	mu      sync.Mutex
	waiting map[string]map[*batchWait]struct{}
}

// batchWait is one job that waits in a batch.
type batchWait struct {
	queue string
	flush func() // starts its batch
}

// arrival is more than a job needs from here to its place in its batch.
const arrival = time.Millisecond

// join counts a job in that is about to wait. slots is how many its queue has.
func (b *batchSlots) join(w *batchWait, slots func(queue string) int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[string]map[*batchWait]struct{}{}
	}
	if b.waiting[w.queue] == nil {
		b.waiting[w.queue] = map[*batchWait]struct{}{}
	}
	b.waiting[w.queue][w] = struct{}{}
	if len(b.waiting[w.queue]) >= slots(w.queue) {
		time.AfterFunc(arrival, func() { b.flushFull(w.queue, slots) })
	}
}

// leave counts a job out: its batch has begun, or it no longer waits.
func (b *batchSlots) leave(w *batchWait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting[w.queue], w)
}

// flushFull starts what waits of a queue, if all its slots still do.
func (b *batchSlots) flushFull(queue string, slots func(queue string) int) {
	b.mu.Lock()
	var flush []func()
	if len(b.waiting[queue]) >= slots(queue) {
		for w := range b.waiting[queue] {
			flush = append(flush, w.flush)
		}
	}
	b.mu.Unlock()
	for _, f := range flush { // a batch that has begun meanwhile has nothing that waits
		f()
	}
}

// slots is how many jobs of a queue run here at once, at most.
func (e *Engine) slots(queue string) int {
	e.mu.Lock()
	r := e.running
	e.mu.Unlock()
	if r == nil {
		return 1 << 30
	}
	return r.Slots(queue)
}
