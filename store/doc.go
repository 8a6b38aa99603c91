// Package store is the seam between the engine and a database. It may change
// before v1.
//
// A method is a whole transition over a slice: it happens in one transaction,
// wholly or not at all, and its caller never composes two of them to keep a
// promise. Small roles ([Jobs], [Workers], [Control], [Upkeep], [Reader]) make up
// [Store]; extra powers are optional interfaces ([Listener]) that the engine asks
// for with a type assertion.
//
// # Rules for every store
//
//   - Methods are safe for concurrent use. Calls from many goroutines may share
//     one commit (group commit), but a call's error never comes from another
//     call's rows.
//   - An error means that nothing of the call was done, except for errors that
//     wrap [job.ErrOutcomeUnknown]: then the call may be repeated as it was, and
//     repeating it is safe.
//   - Answers are in the order of the inputs, one per input.
//   - Time is the store's: due times, leases, expiries and the times in answers
//     come from one clock, read in the store's clock.go.
//   - A row that enters waiting gets due = max(due, now).
//   - A worker's write carries its worker and run; with any other run it changes
//     nothing and is answered [job.Stale].
//   - Locks are taken in this order: worker, lane, flow, edge group, job; within
//     a table by ascending id. An operation ([Operations]) is locked before the jobs
//     of its page, and by whoever locks nothing else.
//   - A draft that asks to begin ([job.HandOver]) is settled by whoever takes it:
//     it begins in the commit that accepts it, or waits as if it had not asked.
//   - A returned job's byte slices belong to the caller.
//
// storetest proves these rules for each store.
package store
