// Package memory keeps events in the memory of a process: a stream.Backend for tests, of users
// too. Nothing survives the process, and nothing is trimmed.
//
//	log        e1 e2 e3 e4 e5 e6 ...          one slice, in the order of positions
//	shelf      next ----^   back: e2 (due at 12:00:05), e1 (lost twice: alone)
//	member     open: e3 e4
//
// A shelf is what members share: how far its log is read, and what was given back. A group
// has one; in fan-out each member has its own. In ordered mode events stand in lines by stripe,
// and a stripe is its member's until nothing of it is open.
//
// It declares every feature. All time is time.Now and timers, so that tests run it in a bubble
// of testing/synctest. [Backend.Kill] takes a member for dead, as a lease that has run out
// does ([Options.Lease]).
package memory
