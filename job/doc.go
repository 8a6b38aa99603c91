// Package job is the vocabulary of background work and its pure rules: what a
// job is, which moves it may make, and what happens next. It has no I/O and
// asks nobody the time; stores and the runner apply what it decides.
//
// # States
//
//	              +-----------+   edges fire    +---------+
//	Start ------> |  blocked  | --------------> |         | <----- Enqueue
//	              +-----------+                 | waiting |
//	                    |                       |         | <--------------+
//	                    |                       +---------+                |
//	                    |                         |     ^                  |
//	                    |                   claim |     | retry, snooze,   | signal,
//	                    |                   run+1 |     | release, rescue  | timer,
//	                    |                         v     |                  | operator
//	                    |                       +---------+          +-----------+
//	                    |                       | running | -------> | suspended |
//	                    |                       +---------+          +-----------+
//	                    v                            |                     |
//	final:  skipped, cancelled            done, dead, cancelled     dead, cancelled
//
// A waiting job is shown as "ready" when its due time has come and as
// "scheduled" before. Final jobs live in the archive. [CanMove] is the whole
// table; every store applies exactly it.
//
// # Fencing
//
// Each claim gives a job a new run number, which never decreases. Every write
// of a worker carries the run it holds; a write with another run changes
// nothing and is answered [Stale]. The run number, not a lock, proves
// ownership, because the owner may be a dead process.
//
// # Attempts
//
// An attempt is burned only by a failure that a handler returned (or its panic
// or timeout). Runs that were lost with their process, given back at a stop,
// snoozed or parked burn none; lost runs count against their own limit
// ([MaxLost]).
//
// # What cannot be read
//
// A stored part that this build cannot read is a value that says so, never an
// error: [Failures] reads as far as it can, [Job.Unreadable] names other parts.
// One bad row must not be the error of the batch it is in.
package job
