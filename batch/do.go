package batch

import (
	"context"
	"errors"
	"fmt"
)

// Do hands in to the next batch of its key and returns its output, or its error.
//
// If ctx ends first, Do returns the context's error at once: an item whose processing had not begun is taken back and
// will not be processed; otherwise the error is ErrOutcomeUnknown as well.
func (b *Batcher[K, In, Out]) Do(ctx context.Context, key K, in In) (out Out, err error) {
	it, err := b.newItem(ctx, key, in)
	if err != nil {
		b.refused(1, err)
		return out, err
	}
	s := b.segmentOf(key)
	s.mu.Lock()
	q, err := s.admit(key, it)
	s.mu.Unlock()
	if err != nil {
		b.totals.give(1, it.weight)
		b.reuse(it)
		b.refused(1, err)
		return out, err
	}
	b.received(1)
	return b.await(ctx, q, it)
}

// DoMany hands in all items of one key, in order and next to each other, and waits for all. The outputs are in the order
// of the inputs; the error is nil, or [Errors] with one entry per input.
//
// When a limit is reached, the items from there on are refused with ErrQueueFull, and those before are handled.
func (b *Batcher[K, In, Out]) DoMany(ctx context.Context, key K, in []In) ([]Out, error) {
	if len(in) == 0 {
		return nil, b.fault
	}
	items, refusal := b.newItems(ctx, key, in)
	var q *keyQueue[K, In, Out]
	admitted := 0
	if len(items) > 0 {
		s := b.segmentOf(key)
		s.mu.Lock() // held for all of them: they are next to each other, and in one batch if it has room
		for _, it := range items {
			at, err := s.admit(key, it)
			if err != nil {
				refusal = err
				break
			}
			q = at
			admitted++
		}
		s.mu.Unlock()
	}
	b.withdraw(items[admitted:])
	b.received(admitted)
	b.refused(len(in)-admitted, refusal)

	outs, errs, failed := make([]Out, len(in)), make(Errors, len(in)), admitted < len(in)
	for i, it := range items[:admitted] {
		outs[i], errs[i] = b.await(ctx, q, it)
		failed = failed || errs[i] != nil
	}
	if !failed {
		return outs, nil
	}
	for i := admitted; i < len(in); i++ {
		errs[i] = refusal
	}
	return outs, errs
}

// newItems makes items of the inputs up to the first that is refused, and says why that one is.
func (b *Batcher[K, In, Out]) newItems(ctx context.Context, key K, in []In) (items []*entry[In, Out], refusal error) {
	items = make([]*entry[In, Out], 0, len(in))
	returns := false
	defer func() {
		if !returns { // Work.Weigh panicked: its caller may recover, and the items before would hold their share for ever
			b.withdraw(items)
		}
	}()
	for i := range in {
		it, err := b.newItem(ctx, key, in[i])
		if err != nil {
			refusal = err
			break
		}
		items = append(items, it)
	}
	returns = true
	return items, refusal
}

// withdraw gives back what items took that were never admitted.
func (b *Batcher[K, In, Out]) withdraw(items []*entry[In, Out]) {
	for _, it := range items {
		b.totals.give(1, it.weight)
		b.reuse(it)
	}
}

// newItem checks an input and takes its share of the totals.
func (b *Batcher[K, In, Out]) newItem(ctx context.Context, key K, in In) (*entry[In, Out], error) {
	if b.fault != nil {
		return nil, b.fault
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !equal(key, key) { // as a NaN
		return nil, fmt.Errorf("%s%w: key %v does not equal itself and would never be found again", prefix(b.options.Name), ErrInvalid, key)
	}
	weight := 0
	if b.functions.weigh != nil {
		if weight = b.functions.weigh(in); weight < 0 {
			return nil, fmt.Errorf("%s%w: Work.Weigh returned %d; it must be at least 0", prefix(b.options.Name), ErrInvalid, weight)
		}
	}
	if err := b.totals.take(weight); err != nil {
		return nil, err
	}
	it, ok := b.items.Get().(*entry[In, Out])
	if !ok {
		it = &entry[In, Out]{ready: make(chan struct{}, 1)}
	}
	it.in, it.weight = in, weight
	if b.tracer != nil {
		it.caller = ctx
	}
	return it, nil
}

func (b *Batcher[K, In, Out]) reuse(it *entry[In, Out]) {
	*it = entry[In, Out]{ready: it.ready}
	b.items.Put(it)
}

func equal[K comparable](a, b K) bool { return a == b }

// await returns an item's answer, or takes the item back when the context ends first. (Yielding once before it waits,
// in the hope of an answer, made it slower by a third.)
func (b *Batcher[K, In, Out]) await(ctx context.Context, q *keyQueue[K, In, Out], it *entry[In, Out]) (out Out, err error) {
	if done := ctx.Done(); done == nil {
		<-it.ready
	} else {
		select {
		case <-it.ready:
		case <-done:
			if answered, err := b.giveUp(ctx, q, it); !answered {
				return out, err
			}
		}
	}
	out, err = it.out, it.err
	b.reuse(it)
	return out, err
}

// giveUp takes an item back, unless its answer is there after all: then the answer counts.
func (b *Batcher[K, In, Out]) giveUp(ctx context.Context, q *keyQueue[K, In, Out], it *entry[In, Out]) (answered bool, err error) {
	s := q.segment // the same for all lives of q; the rest of q is this item's only while leave finds it there
	s.mu.Lock()
	left := q.leave(it)
	s.mu.Unlock()
	if left {
		b.reuse(it)
		if b.options.Observer != nil {
			b.options.Observer.Left(1)
		}
		return false, ctx.Err()
	}
	select {
	case <-it.ready:
		return true, nil
	default: // the item stays with its batch, and the garbage collector takes it from there
		return false, fmt.Errorf("%s%w: %w", prefix(b.options.Name), ErrOutcomeUnknown, ctx.Err())
	}
}

func (b *Batcher[K, In, Out]) received(items int) {
	if b.options.Observer != nil && items > 0 {
		b.options.Observer.Received(items)
	}
}

func (b *Batcher[K, In, Out]) refused(items int, err error) {
	if b.options.Observer != nil && items > 0 && (errors.Is(err, ErrQueueFull) || errors.Is(err, ErrClosed)) {
		b.options.Observer.Rejected(items, err)
	}
}
