package batch

import (
	"context"
	"fmt"
)

// Close refuses new items, makes every partial batch ready at once, and returns nil when the last batch is finished.
//
// When ctx ends first, or has ended before, Close answers every item that is not yet in processing with ErrClosed, ends the context of
// what is, and returns: it waits neither for a process function nor for an acquisition that does not listen. Callers
// of such a batch get its answer when it has one. Close may be called again, and from several goroutines.
func (b *Batcher[K, In, Out]) Close(ctx context.Context) error {
	if b.fault != nil {
		return b.fault
	}
	flush := ctx.Err() == nil
	for _, s := range b.segments {
		s.close(flush)
	}
	for _, s := range b.segments {
		select {
		case <-s.empty:
			continue
		default:
		}
		select {
		case <-s.empty:
		case <-ctx.Done():
			return b.abandon(ctx)
		}
	}
	b.cancel(ErrClosed)
	return nil
}

// close makes the segment refuse items, and all that waits ready. Batches that find no place now start as others finish.
func (s *segment[K, In, Out]) close(flush bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	s.closing = true
	if s.alarm != nil {
		s.alarm.Stop()
	}
	for _, q := range s.deadlines {
		q.position = -1
	}
	s.deadlines = nil
	if flush {
		for _, q := range s.keys {
			q.pump()
		}
	}
	if len(s.keys) == 0 {
		close(s.empty)
	}
}

// abandon gives up all items that are not in processing.
func (b *Batcher[K, In, Out]) abandon(ctx context.Context) error {
	b.cancel(ErrClosed)
	given := 0
	for _, s := range b.segments {
		given += s.abandon()
	}
	return fmt.Errorf("%sbatch: close gave up %d items that waited and left %d in processing: %w",
		prefix(b.options.Name), given, b.totals.items.held.Load(), ctx.Err())
}

func (s *segment[K, In, Out]) abandon() (given int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.keys {
		for _, r := range q.open {
			given += s.giveUp(&r.items)
		}
		given += s.giveUp(&q.waiting)
		s.dropIdle(q)
	}
	return given
}

func (s *segment[K, In, Out]) giveUp(items *line[In, Out]) int {
	count, weight := items.count, 0
	for it := items.head; it != nil; it = it.next {
		weight += it.weight
	}
	s.owner.totals.give(count, weight)
	items.answerAll(s.owner.closed)
	return count
}
