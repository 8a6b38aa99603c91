package batch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"
	"time"
)

// Batcher groups the items of many callers by key and processes each group in one go. It is safe for concurrent use.
// Make one with [New] or [NewWork], and [Batcher.Close] it.
type Batcher[K comparable, In, Out any] struct {
	functions functions[K, In, Out]
	options   Options
	tracer    Tracer
	fault     error
	closed    error // ErrClosed, with the batcher's name

	full  int           // from how many waiting items on a batch is ready for being full
	wait  time.Duration // how long a batch may stay short of ready; 0: never
	stamp bool          // whether items carry their time of arrival
	epoch time.Time     // the zero of the batcher's clock

	seed   maphash.Seed
	segments []*segment[K, In, Out]
	totals totals
	turns  turns[K, In, Out]
	items  sync.Pool

	context context.Context // of every acquisition and processing
	cancel  context.CancelCauseFunc
}

// New makes a batcher that calls process for each batch: in holds 1 to MaxBatch items of one key in order of arrival.
// The rules for its results and its context are those of [Work].
//
// A batcher with faulty options does nothing but say so: Do, DoMany, Close and Err return all faults, joined.
func New[K comparable, In, Out any](process func(ctx context.Context, key K, in []In) ([]Out, error), options Options) *Batcher[K, In, Out] {
	var fault error
	if process == nil {
		fault = fmt.Errorf("%w: the process function is nil; it must be a function", ErrInvalid)
	}
	return newBatcher(functions[K, In, Out]{process: process}, options, fault)
}

// NewWork makes a batcher whose batches acquire a resource, or whose items have a weight. See [New] for faults.
func NewWork[K comparable, R, In, Out any](work Work[K, R, In, Out], options Options) *Batcher[K, In, Out] {
	return newBatcher(work.functions(), options, work.check())
}

func newBatcher[K comparable, In, Out any](f functions[K, In, Out], o Options, fault error) *Batcher[K, In, Out] {
	weighs := f.weigh != nil
	o = o.withDefaults(weighs)
	b := &Batcher[K, In, Out]{functions: f, options: o, fault: errors.Join(fault, o.check(weighs))}
	if b.fault != nil {
		if checkName(o.Name) == nil {
			b.fault = named(o.Name, b.fault)
		}
		return b
	}
	if n, ok := o.Observer.(Namer); ok {
		b.options.Observer = n.Named(o.Name)
	}
	b.tracer, _ = b.options.Observer.(Tracer)
	b.closed = named(o.Name, ErrClosed)
	b.full = o.full()
	b.wait = o.wait()
	b.stamp = b.wait > 0 || b.options.Observer != nil
	b.epoch = time.Now()
	b.seed = maphash.MakeSeed()
	b.segments = make([]*segment[K, In, Out], segmentCount())
	for i := range b.segments {
		b.segments[i] = newShard(b)
	}
	b.totals.name = o.Name
	b.totals.items.most = int64(o.TotalItems)
	b.totals.bytes.most = int64(o.TotalBytes)
	b.turns.free.Store(int64(o.TotalConcurrency))
	b.context, b.cancel = context.WithCancelCause(context.Background())
	return b
}

// segmentCount is a power of two that leaves each running goroutine a segment of its own most of the time.
func segmentCount() int {
	count := 1
	for count < 8*runtime.GOMAXPROCS(0) && count < 256 {
		count *= 2
	}
	return count
}

// Stats is what a batcher holds at one moment.
type Stats struct {
	Keys    int // keys with items that wait or run
	Items   int // items accepted and not yet answered
	Bytes   int // their weight by Work.Weigh
	Running int // batches that acquire or process
}

// Stats counts what the batcher holds. Batches that start or end meanwhile may be counted on one side only.
func (b *Batcher[K, In, Out]) Stats() Stats {
	stats := Stats{Items: int(b.totals.items.held.Load()), Bytes: int(b.totals.bytes.held.Load())}
	for _, s := range b.segments {
		s.mu.Lock()
		stats.Keys += len(s.keys)
		for _, q := range s.keys {
			stats.Running += q.running
		}
		s.mu.Unlock()
	}
	return stats
}

// Name returns Options.Name.
func (b *Batcher[K, In, Out]) Name() string { return b.options.Name }

// Err returns what is wrong with the options and functions the batcher was made with, or nil.
func (b *Batcher[K, In, Out]) Err() error { return b.fault }

func (b *Batcher[K, In, Out]) segmentOf(key K) *segment[K, In, Out] {
	return b.segments[maphash.Comparable(b.seed, key)&uint64(len(b.segments)-1)]
}

// now is the time since the batcher was made.
func (b *Batcher[K, In, Out]) now() time.Duration { return time.Since(b.epoch) }

// observedNow reads the clock only when someone wants to know.
func (b *Batcher[K, In, Out]) observedNow() time.Duration {
	if b.options.Observer == nil {
		return 0
	}
	return b.now()
}
