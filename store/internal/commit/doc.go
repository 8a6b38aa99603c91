// Package commit is group commit: calls of many goroutines become few
// transactions. Both stores write through it, and it knows no database.
//
// One goroutine at a time takes what is waiting and commits it: that of the committer,
// or a caller who found nobody else there. What arrives meanwhile is the next batch. An idle committer therefore answers a call at once, and a busy
// one makes large batches, without a timer and without a size to tune.
//
//	arrive ──> waiting ──> taken ──> answered
//	              │          │
//	              └─> left   └─> (unknown: its caller is gone, Options.Unknown)
//
// # What it promises
//
//   - Once: a call is taken once or never, and has one answer.
//   - Order: calls are taken in the order of their arrival, and so batches are.
//     One batch is committed at a time.
//   - Bounds: a batch has at most Options.MaxRows rows, unless it is one call.
//     Calls are never divided, and none is passed over for a smaller one.
//   - Giving up: a call whose caller's context ends before it was taken does
//     nothing, and its caller is told at once. Afterwards it is too late: the
//     caller waits for its answer, or is told that nobody knows (Options.Unknown).
//   - Latency: between arrival and commit stand the batch before, Options.Begin
//     and a few calls of runtime.Gosched (Options.Yield); never a timer.
//   - Close: later calls are refused, those that wait are still committed, and
//     when it returns Commit is not called any more and the goroutine has ended.
//
// # What a store brings
//
// Commit runs a batch and answers each call of it ([Call.Answer]): together where
// that works, else each alone, so that an error never comes from another's rows.
// It may answer later, from another goroutine, and the next batch goes on
// meanwhile. Begin takes what a commit needs (a lock, a transaction) before the
// batch is closed: what arrives while it waits is in the same commit, and who
// gives up meanwhile has not been started. A caller may use its call again when it
// was answered ([Call.Answered]), which saves an allocation.
package commit
