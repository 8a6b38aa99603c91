// Package member makes a process a worker of its namespace: it registers, renews
// its lease, learns which part of each total is its own, and notices when the
// store's clock is set.
//
// It does not know what runs under the lease. Whoever does is its [Host], which is
// told of every change and asked which runs have begun.
//
// # The lease
//
// It belongs to the worker (one boot of one process) and is renewed by its beats.
// It is counted from when a beat was sent: the store may have written it then. When
// the last one that succeeded was sent so long ago that the fleet is about to
// declare the worker lost, the lease is over here (Host.Expired), until a beat
// succeeds. When the store says that the worker was declared lost, whoever heard it
// calls [Member.Lost], and the next beat registers anew.
//
//	             Register, Beat              Beat
//	unregistered ---------------> healthy -----------+
//	  ^   ^                        |   ^ ^           |
//	  |   |         Lost           |   | +-----------+
//	  |   +------------------------+   | Beat
//	  |              Lost              |
//	  +--------------------------- expired <--- no beat in time
//
// # Locks
//
// Each call of the host is made under the member's lock, so that the host hears of
// changes in their order. The host may take locks of its own; it must not call the
// member while it holds one of those, nor from within such a call.
package member
