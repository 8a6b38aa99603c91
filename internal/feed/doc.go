// Package feed makes a store's groups a stream.Backend: it keeps what each member has open,
// turns verdicts into what the store writes, and wakes members that wait.
//
//	consumer --Next--> feed --Turn--> store        one commit settles and fetches
//	         --Wait--> news                        head of the log, due times, version of the group
//
// A feed is a member's: refs are its own, and what the store must know of a delivery (its
// number, how often it failed, whether it has a row) is kept here while it is open. The store
// fences: a turn that is not the next one of its hand is refused, and the feed is over.
package feed
