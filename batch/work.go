package batch

import (
	"context"
	"errors"
	"fmt"
)

// Work holds the functions of a batcher that needs more than a process function: a resource per batch (a connection,
// a lock, a transaction), or a weight per item. R is the resource; let it be struct{} when there is none.
//
// The context of Acquire and Process is the batcher's, not a caller's: one caller that leaves must not fail the others.
// It ends when [Batcher.Close] runs out of patience, with the cause ErrClosed.
type Work[K comparable, R, In, Out any] struct {
	// Process handles one batch: in holds at least one item and at most MaxBatch, in order of arrival. It returns one
	// output per input in the same order, or an error for all of them, or [Errors] with one entry per input. The slice in
	// is its to keep, but its order is what outputs are matched with.
	Process func(ctx context.Context, key K, resource R, in []In) ([]Out, error)

	// Acquire, if set, gets the batch's resource before Process. The batch stays open to new items until it returns. An
	// error is the answer of the items of this batch alone. It must return when its context ends.
	Acquire func(ctx context.Context, key K) (R, error)

	// Release, if set, is called once for every resource that Acquire returned without an error, before any caller of the
	// batch gets its answer, also when Process panicked or every caller had left.
	Release func(key K, resource R)

	// Weigh, if set, tells the weight of an item, usually in bytes, for Options.TotalBytes. It runs in the caller's goroutine,
	// and its panic is that caller's.
	Weigh func(in In) int
}

// acquired is a batch's right to process: the process function with its resource bound, and how to give that back.
type acquired[K comparable, In, Out any] struct {
	process func(ctx context.Context, key K, in []In) ([]Out, error)
	release func()
}

// functions is Work without its resource type, so that a Batcher has three type parameters and not four.
type functions[K comparable, In, Out any] struct {
	process func(ctx context.Context, key K, in []In) ([]Out, error)    // when there is nothing to acquire
	acquire func(ctx context.Context, key K) (acquired[K, In, Out], error) // otherwise
	weigh   func(in In) int
}

func (w Work[K, R, In, Out]) functions() functions[K, In, Out] {
	f := functions[K, In, Out]{weigh: w.Weigh}
	if w.Acquire == nil {
		f.process = func(ctx context.Context, key K, in []In) ([]Out, error) {
			var none R
			return w.Process(ctx, key, none, in)
		}
		return f
	}
	f.acquire = func(ctx context.Context, key K) (acquired[K, In, Out], error) {
		resource, err := w.Acquire(ctx, key)
		if err != nil {
			return acquired[K, In, Out]{}, err
		}
		return acquired[K, In, Out]{
			process: func(ctx context.Context, key K, in []In) ([]Out, error) {
				return w.Process(ctx, key, resource, in)
			},
			release: func() {
				if w.Release != nil {
					w.Release(key, resource)
				}
			},
		}, nil
	}
	return f
}

func (w Work[K, R, In, Out]) check() error {
	var faults []error
	if w.Process == nil {
		faults = append(faults, fmt.Errorf("%w: Work.Process is nil; it must be a function", ErrInvalid))
	}
	if w.Release != nil && w.Acquire == nil {
		faults = append(faults, fmt.Errorf("%w: Work.Release is set but Work.Acquire is nil; there is nothing to release", ErrInvalid))
	}
	return errors.Join(faults...)
}
