package batch

import (
	"context"
	"iter"
	"runtime"
	"slices"
)

// activeBatch is a batch from its start to its answers. It is open, and its items are guarded by the segment's lock, until it
// begins; from then on the goroutine that carries it owns it.
type activeBatch[K comparable, In, Out any] struct {
	owner *Batcher[K, In, Out]
	queue *keyQueue[K, In, Out]
	items line[In, Out]

	carry   func() // carryOn, bound once per structure: starting a goroutine on it allocates nothing
	few     bool   // it started with fewer items than batches have lately
	begun   bool
	release func()                  // gives back the acquired resource; nil when there is none
	cancel  context.CancelCauseFunc // ends the context of the acquisition
	end     func(Report)
	report  Report
}

// carryOn runs a batch, then the one that inherits its place, and so on: under load one goroutine serves batch after
// batch.
func (r *activeBatch[K, In, Out]) carryOn() {
	b := r.owner
	defer b.rescue(&r)
	for r != nil {
		s := r.queue.segment
		if r = b.finish(r, b.work(r)); r == nil {
			r = s.hover()
		}
	}
}

// hover lets the callers just answered run, once, before the goroutine ends: a batch that starts meanwhile is handed
// to it. A new goroutine would cost more than that, above all the growth of its stack.
func (s *segment[K, In, Out]) hover() *activeBatch[K, In, Out] {
	s.mu.Lock()
	s.hovering++
	s.mu.Unlock()
	runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hovering--
	if len(s.handed) == 0 {
		return nil
	}
	r := s.handed[0]
	s.handed = slices.Delete(s.handed, 0, 1)
	return r
}

// rescue finishes the batch of a goroutine that a user's function ended by runtime.Goexit, and lets another one carry on.
func (b *Batcher[K, In, Out]) rescue(r **activeBatch[K, In, Out]) {
	if *r == nil {
		return
	}
	if next := b.finish(*r, fate[Out]{err: newPanicError(b.options.Name, errExited)}); next != nil {
		go next.carry() // not launch, which would need the lock of its segment
	}
}

// work acquires, begins and processes a batch. It returns a panic of any user's function as the fate of the batch.
func (b *Batcher[K, In, Out]) work(r *activeBatch[K, In, Out]) (f fate[Out]) {
	defer func() {
		if value := recover(); value != nil {
			f = fate[Out]{err: newPanicError(b.options.Name, value)}
		}
	}()
	key := r.queue.key
	started := b.observedNow()
	if b.options.Observer != nil {
		b.options.Observer.Started()
	}
	process := process[K, In, Out]{function: b.functions.process, name: b.options.Name}
	if b.functions.acquire != nil {
		lease, err := b.acquire(r, key)
		r.report.Acquire = b.observedNow() - started
		if err != nil {
			return fate[Out]{err: err}
		}
		process.function, r.release = lease.process, lease.release
	} else if r.few {
		b.gather(r)
	}
	in := b.begin(r)
	if len(in) == 0 {
		return fate[Out]{}
	}
	ctx := b.context
	if b.tracer != nil {
		ctx, r.end = b.tracer.Trace(ctx, r.callers())
	}
	begun := b.observedNow()
	defer func() { r.report.Process = b.observedNow() - begun }()
	if b.options.Bisect != nil {
		return process.bisect(ctx, key, in, b.options.Bisect)
	}
	return process.call(ctx, key, in)
}

// gather lets the goroutines run that can run now, as long as that brings items to a batch that is smaller than others
// were lately. Callers that were answered together come back together; without this the first of them would be a batch
// of its own and all others would wait for it, which halves what 64 callers get from a commit. It needs no timer, and
// costs nothing where batches are small.
func (b *Batcher[K, In, Out]) gather(r *activeBatch[K, In, Out]) {
	s := r.queue.segment
	for before, now := 0, 1; now > before; {
		runtime.Gosched()
		s.mu.Lock()
		before, now = now, r.items.count
		if now >= s.lately {
			before = now
		}
		s.mu.Unlock()
	}
}

// begin closes a batch to new items and to callers that leave, and returns its inputs. Places that callers left empty
// while it was open go to those who wait.
func (b *Batcher[K, In, Out]) begin(r *activeBatch[K, In, Out]) []In {
	q, s := r.queue, r.queue.segment
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.waiting.count > 0 && r.items.count < b.options.MaxBatch {
		r.items.fill(&q.waiting, b.options.MaxBatch)
		s.schedule(q)
	}
	s.seal(r)
	in := make([]In, 0, r.items.count)
	for it := r.items.head; it != nil; it = it.next {
		in = append(in, it.in)
	}
	return in
}

// seal ends the time in which items join and leave a batch. The segment's lock is held.
func (s *segment[K, In, Out]) seal(r *activeBatch[K, In, Out]) {
	r.begun = true
	q := r.queue
	at := slices.Index(q.open, r)
	q.open = slices.Delete(q.open, at, at+1)
	for it := r.items.head; it != nil; it = it.next {
		it.home = nil
	}
}

// finish gives back what the batch held, then answers its callers, and returns the batch that inherits its place, if
// any. In this order a caller that has its answer finds its place free.
func (b *Batcher[K, In, Out]) finish(r *activeBatch[K, In, Out], f fate[Out]) *activeBatch[K, In, Out] {
	q, s := r.queue, r.queue.segment
	if !r.begun { // its acquisition failed: this batch fails, and no item that waits for another
		s.mu.Lock()
		s.seal(r)
		s.mu.Unlock()
	}
	if err := r.giveBack(); err != nil {
		f = fate[Out]{err: err}
	}
	items, weight := r.items, 0
	if b.functions.weigh != nil {
		for it := items.head; it != nil; it = it.next {
			weight += it.weight
		}
	}
	b.observe(r, &f)

	s.mu.Lock()
	b.totals.give(items.count, weight)
	q.running--
	s.lately = min(max(items.count+q.waiting.count, s.lately/2), b.options.MaxBatch)
	s.reuse(r)
	var next *activeBatch[K, In, Out]
	if b.turns.waiting.Load() == 0 && q.startable() {
		next = q.start()
	}
	q.pump()
	s.dropIdle(q)
	s.mu.Unlock()
	if next == nil {
		next = b.passTurn()
	}

	i := 0
	for it := items.head; it != nil; i++ {
		following := it.next // read before the signal: after it the item is its caller's again
		it.out, it.err = f.of(i)
		it.ready <- struct{}{}
		it = following
	}
	return next
}

// passTurn gives the place of a finished batch to the key whose turn it is, and returns that key's batch.
func (b *Batcher[K, In, Out]) passTurn() *activeBatch[K, In, Out] {
	for {
		q, generation := b.turns.pass()
		if q == nil {
			return nil
		}
		if r := q.segment.granted(q, generation); r != nil {
			return r
		}
	}
}

// granted uses a place that came from the line, or returns nil if the key has no use for it any more.
func (s *segment[K, In, Out]) granted(q *keyQueue[K, In, Out], generation uint64) *activeBatch[K, In, Out] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.generation != generation {
		return nil
	}
	q.lined = false
	if !q.startable() {
		return nil
	}
	r := q.start()
	q.pump()
	return r
}

// observe reports a finished batch. It comes before anything a caller or Close could wait for, so that whoever reads
// the metrics after an answer finds them complete.
func (b *Batcher[K, In, Out]) observe(r *activeBatch[K, In, Out], f *fate[Out]) {
	if b.options.Observer == nil {
		return
	}
	r.report.Name = b.options.Name
	r.report.Items, r.report.Err = r.items.count, f.err
	r.report.Failed = f.failed(r.items.count)
	if r.end != nil {
		r.end(r.report)
	}
	b.options.Observer.Finished(r.report)
}

// callers yields the contexts of the batch's callers in the order of its items.
func (r *activeBatch[K, In, Out]) callers() iter.Seq[context.Context] {
	return func(yield func(context.Context) bool) {
		for it := r.items.head; it != nil; it = it.next {
			if !yield(it.caller) {
				return
			}
		}
	}
}
