package batch

import (
	"context"
	"time"
)

// entry is one input on its way to one answer. The caller of Do owns it before it is admitted and after ready has
// spoken; in between it belongs to the batcher, which writes out and err before it speaks. The lock of the key's segment
// guards the rest.
type entry[In, Out any] struct {
	in    In
	out   Out
	err   error
	ready chan struct{} // one buffered signal, so that answering never waits for a caller that left

	home       *line[In, Out] // where it stands: its key's waiting line or an open batch; nil once its processing began
	prev, next *entry[In, Out]
	arrived    time.Duration   // by the batcher's clock, when a deadline or an observer needs it
	due        bool            // it has waited for MaxWait
	weight     int             // by Work.Weigh
	caller     context.Context // for Tracer only
}

// line is a queue of items in order of arrival that an item can leave from anywhere in constant time.
type line[In, Out any] struct {
	head, tail *entry[In, Out]
	count      int
}

func (l *line[In, Out]) push(it *entry[In, Out]) {
	it.home, it.prev, it.next = l, l.tail, nil
	if l.tail == nil {
		l.head = it
	} else {
		l.tail.next = it
	}
	l.tail = it
	l.count++
}

func (l *line[In, Out]) remove(it *entry[In, Out]) {
	if it.prev == nil {
		l.head = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		l.tail = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.home, it.prev, it.next = nil, nil, nil
	l.count--
}

// fill moves items from the front of source until l has most.
func (l *line[In, Out]) fill(source *line[In, Out], most int) {
	for l.count < most && source.count > 0 {
		it := source.head
		source.remove(it)
		l.push(it)
	}
}

// answerAll gives every item the same error. It may run with the segment's lock held: the signal is buffered.
func (l *line[In, Out]) answerAll(err error) {
	for it := l.head; it != nil; {
		next := it.next // read before the signal: after it the item is its caller's again
		it.home, it.err = nil, err
		it.ready <- struct{}{}
		it = next
	}
	*l = line[In, Out]{}
}
