package batch

import (
	"context"
	"iter"
	"time"
)

// Observer is told what a batcher does, for metrics. Received and Rejected are called once per Do or DoMany, Left once
// per item, Started and Finished once per batch: what an observer costs does not depend on how many items, keys or
// batches there are. Its methods are called from many goroutines, without locks held, and must neither block nor panic.
type Observer interface {
	Received(items int)            // items were accepted
	Rejected(items int, err error) // items were refused: ErrQueueFull, ErrClosed
	Left(items int)                // accepted items whose callers gave up before processing began
	Started()                      // a batch is in flight: it starts to acquire, or to process if there is nothing to acquire
	Finished(report Report)        // a batch is no longer in flight
}

// Namer is an optional power of an [Observer]: one observer for many batchers tells them apart. [New] and [NewWork] call
// Named once with Options.Name, and tell the observer it returns, for example one whose metrics have the name as a label;
// nil stands for no observer.
type Namer interface {
	Named(name string) Observer
}

// Report is what is known of a batch at its end.
type Report struct {
	Name    string        // the batcher's Options.Name
	Items   int           // how many were processed, or failed with the acquisition; 0 if all callers left before
	Failed  int           // how many of them were answered with an error
	Queued  time.Duration // how long the oldest item waited for the batch to start
	Acquire time.Duration // how long Work.Acquire took
	Process time.Duration // how long the process function took, all calls of a bisected batch together
	Err     error         // why Acquire failed, or the error of the whole batch; nil when items had their own
}

// Tracer is an optional power of an [Observer], or of the one that its Named returns: it puts a span around each batch and links it with its callers' spans.
type Tracer interface {
	// Trace is called when processing begins. The context it returns is the one the process function gets; callers
	// yields the contexts passed to Do and DoMany in the order of the items; end is called when the batch is finished,
	// before its callers are answered.
	Trace(ctx context.Context, callers iter.Seq[context.Context]) (traced context.Context, end func(Report))
}
