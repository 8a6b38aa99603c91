package batch

import "time"

// keyQueue is the state of one key, and exists only while the key has items. The lock of its segment guards it.
//
//	   admit            start               begin                finish
//	item ----> waiting ------> open batch ---------> processing --------> answered
//	              |  ready and    |  acquires its       |
//	              |  a place      |  resource, takes    |
//	              |               |  more items         |
//	              +---- leave ----+                     + a caller that leaves now: ErrOutcomeUnknown
//
// Waiting items are one line, cut into batches when they start and not before: an item that leaves frees its place
// for whoever stands behind it.
type keyQueue[K comparable, In, Out any] struct {
	key     K
	segment   *segment[K, In, Out]
	waiting line[In, Out]
	open    []*activeBatch[K, In, Out] // started and not yet begun, oldest first
	running int                // started and not yet finished; each holds a place of turns

	deadline time.Duration // when the first waiting item is due
	position int           // in the segment's deadlines; -1 when not there

	// generation counts the lives of this structure. A place that turns sent to an earlier life is not for this one.
	generation uint64
	lined      bool // in the line of turns, or a place is on its way
	turn       turn[K, In, Out]
}

// ready reports whether the first waiting items may start as a batch. It is the whole of the policies.
func (q *keyQueue[K, In, Out]) ready() bool {
	o := &q.segment.owner.options
	switch {
	case q.waiting.count == 0:
		return false
	case q.waiting.count >= q.segment.owner.full, q.waiting.head.due, q.segment.closing:
		return true
	}
	switch o.Policy.kind {
	case immediate:
		return true
	case balanced:
		return q.running == 0 || q.waiting.count >= o.Policy.hint
	default: // Size, Duration: full or due
		return false
	}
}

func (q *keyQueue[K, In, Out]) startable() bool {
	return q.running < q.segment.owner.options.Concurrency && q.ready()
}

// admit puts an item behind all others of its key: into the newest open batch if nobody waits, else into the line.
func (q *keyQueue[K, In, Out]) admit(it *entry[In, Out]) error {
	o := &q.segment.owner.options
	if newest := len(q.open) - 1; newest >= 0 && q.waiting.count == 0 && q.open[newest].items.count < o.MaxBatch {
		q.open[newest].items.push(it)
		return nil
	}
	if int64(q.waiting.count) >= int64(o.MaxWaiting)*int64(o.MaxBatch) {
		return o.keyFull()
	}
	q.waiting.push(it)
	return nil
}

// pump starts what is ready while there are places, and keeps the deadline of what is not.
func (q *keyQueue[K, In, Out]) pump() {
	for !q.lined && q.startable() && q.segment.owner.turns.take(q) {
		q.segment.launch(q.start())
	}
	q.segment.schedule(q)
}

// start makes a batch of the first waiting items. The caller holds a place for it.
func (q *keyQueue[K, In, Out]) start() *activeBatch[K, In, Out] {
	s := q.segment
	r := s.newRun(q)
	r.items.fill(&q.waiting, s.owner.options.MaxBatch)
	if s.owner.options.Observer != nil {
		r.report.Queued = s.owner.now() - r.items.head.arrived
	}
	r.few = r.items.count < s.lately
	q.running++
	q.open = append(q.open, r)
	return r
}

// leave takes out an item whose caller gives up, and reports false when its processing has begun.
func (q *keyQueue[K, In, Out]) leave(it *entry[In, Out]) bool {
	if it.home == nil {
		return false
	}
	it.home.remove(it)
	q.segment.owner.totals.give(1, it.weight)
	q.segment.schedule(q)
	q.segment.dropIdle(q)
	return true
}
