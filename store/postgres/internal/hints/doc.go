// Package hints tells claims of jobs that became ready: this process's by a
// registered function, others by NOTIFY, and all of them by rows that users'
// transactions leave. Nothing depends on a hint: who misses one finds out by
// polling.
//
// NOTIFY takes a lock that all commits of the server which notify share, and
// holds it until the commit is on disk. So it is never issued in a transaction of
// a user, only from outside:
//
//	what commits                     is told                       and found
//	a transition of the store's      right after its commit        at once
//	Engine.Tx                        right after its commit        at once
//	Within, which commits out of     50 ms after it left its row   by that look, by those that follow it (0.1, 0.5
//	our sight                                                      and 2 s later), or by the next poll [5 s]
package hints
