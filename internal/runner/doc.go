// Package runner claims jobs, runs their handlers and finishes them.
//
// # Life of a run
//
//	          claim.go                slot.go               finish.go
//	store --- Claim ---> ready ----> running ----> ended --- Finish ---> store
//	             |      (prefetched)    |                       ^
//	             +--> alone.go ---------+                       |
//	              (suspects)       given back: never started, stop, lost lease
//
//	enqueue, end --- commit ---> running: what this process accepts while it has a slot (hand_over.go)
//
// A task is in exactly one of these places (place.go), under one lock, from the
// claim's answer to the verdict of its finish; together they are what a worker
// reports to hold (report.go). A handler that outlasts the stop of its runner is
// still called when its run has moved on: Runner.abandoned remembers it.
//
// # Loops
//
// All loops run under supervise and each does one round at a time:
//
//	beat    registers the worker, renews its lease, learns of cancels and portions (internal/member)
//	claim   fills free slots, sleeps until a hint, a due time or the poll          (claim.go)
//	finish  coalesces ends into one call: at once when idle, large under load      (finish.go)
//	note    keeps progress and log lines of long runs                             (note.go)
//	watch   finds stuck handlers and prefetched jobs that wait too long            (watch.go)
//
// # Queues come and go
//
// SetQueues changes them while the runner runs (queues.go). A task keeps its queue
// by pointer, so a queue that is removed lives on, without slots, until its runs are
// over and no claim can answer with more of them. What a handler's end needs of a
// queue is read without a lock (queue.policy). The store hears of it by Beat.Serves.
//
// # Who may run
//
// The lease is the member's (internal/member), which tells the runner of each
// change (lease.go). When the last successful beat was sent too long ago, the runner
// cancels its handlers itself and starts nothing until a beat succeeds; when the
// worker was declared lost, it also forgets its runs. The run number in each finish,
// not this timing, is what protects the new owner.
//
// # Locks
//
// In this order; one that is held forbids those above it:
//
//	Member.mu    the lease, beats, the store's clock. Held while the member tells
//	             the runner (lease.go), never during a call of the store.
//	Runner.mu    the tasks and their places, queues, slots, the suspect, the ends on
//	             their way, counters, a copy of the lease, the runner's phase. Of a
//	             task: what Task says. Of claims: underWay and unclear.
//	services.mu  the tree of Run
//	Task.mu      what its handler says: journal, transaction
//
// A job costs Runner.mu when its handler returns and a next begins, and its share
// of a claim, a batch of ends and their verdicts. That is why the lease is copied
// and counters have no lock of their own. The rest of claims, finishes and noteLoad
// belong to one loop each.
//
// # Stop
//
// Run works until its context ends. Then: no new claims; what has not started
// goes back; handlers get the grace period; their contexts are cancelled with
// job.ErrStopping; after a last wait what is left goes back on its behalf
// without burning an attempt; ends are flushed; the worker deregisters. Each
// phase has a bound, also when the store is down (stop.go).
package runner
