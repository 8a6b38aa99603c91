// Package batch turns many callers' items into few calls: it groups them by key, hands each group to one function in
// one go, and gives every caller its own output or error.
//
//	b := batch.New(func(ctx context.Context, table string, rows []Row) ([]int64, error) {
//		return insertAll(ctx, table, rows)
//	}, batch.Options{Policy: batch.Balanced(20), MaxBatch: 500})
//	id, err := b.Do(ctx, "orders", row)
//
// # When batching helps
//
// When the cost of a call is mostly paid per call and not per item: round trips, commits, locks. Take a transaction
// of five round trips of 1 ms each that holds a row lock. Nobody else gets past that row meanwhile, so no number of
// goroutines or connections makes more than 200 items a second of it. Batches of 4 make 800, because four items share
// the five round trips. See the example "RowLock".
//
// It does not help when the cost is paid per item, or when items of one key hardly ever meet.
//
// # Which policy
//
// A policy decides when waiting items are ready to become a batch:
//
//	Immediate()  at once, as long as a key may run more batches. The lowest latency; batches grow by themselves when
//	             all places are taken. With Concurrency 1 this is group commit: an idle key works at once, and what
//	             comes while it works is the next batch.
//	Balanced(n)  at once if the key is idle, otherwise from n items on. The first choice when batches may overlap and a
//	             small batch costs as much as a large one.
//	Duration(d)  d after the first item. For work that nobody waits for, when every call counts: metrics, access logs.
//	Size()       when full. For bulk loads that end with Close.
//
// Under every policy a full batch is ready, and so is one whose oldest item has waited for MaxWait. One choice takes the
// first of these away: Duration(d).RejectWhenFull() is a hard pace for what is called. It starts at most one batch of a
// key in d, and refuses what does not fit instead of starting early. What is ready
// starts when there is a place for it: Concurrency for its key, TotalConcurrency over all keys, where keys take turns.
// TestSimulator compares the policies under different loads; run it with
//
//	go test ./batch -run Simulator -v
//
// # Names
//
// Options.Name tells one batcher of a program from another. It stands in front of the errors the batcher makes
// ("orders: batch: queue full: ..."), in each [Report], and an [Observer] that is a [Namer] is told it once, so that one
// observer serves all batchers without a cost per call.
//
// # The life of an item
//
// An item waits in its key's line, in order of arrival. Its batch starts when it is ready and a place is free, and then
// acquires its resource if the batcher has [Work.Acquire]; until that is done the batch is open and takes more items.
// Then it begins: it is processed, the resource is released, its places are freed, and its callers are answered. Items
// of one key are processed in order of arrival, except where batches run side by side; Concurrency 1 makes the order
// strict.
//
// A caller whose context ends before its batch begins takes its item back: it is not processed, and its place is free.
// Later than that Do returns at once with [ErrOutcomeUnknown], and the batch goes on without this caller.
//
// # What can go wrong
//
//   - process returns an error: it is the answer of each item of that batch. [Errors] answers them one by one.
//   - process returns a wrong number of outputs: [ErrWrongOutputs] for each.
//   - process panics: [ErrPanic] for each; other batches, and later ones, do not notice.
//   - Acquire fails, panics or takes longer than AcquireTimeout: the answer of that batch's items alone.
//   - One poison item fails its whole batch: Options.Bisect finds it, if failed calls leave nothing behind.
//   - A limit is reached: [ErrQueueFull], at once; Do never blocks for want of room.
//   - The options are faulty: the batcher answers every call with all faults, and [Batcher.Err] tells without a call.
//
// # What it costs
//
// Keys are spread over segments with a lock each. An item costs no goroutine, no timer and, in steady state, no
// allocation; a batch costs its slice of inputs. A key exists only while it has items. A batcher does not start
// goroutines of its own: one runs while there is a batch to carry. A batch smaller than its predecessors lets other
// goroutines run before it begins, for their items to join; it never waits for a clock.
package batch
