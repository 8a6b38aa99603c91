// Package stream is the event log: its vocabulary and its pure rules. Stores and brokers
// keep events; this package says what an event, a topic, a pattern, a filter and a
// position are, and what is refused before anything is stored.
//
//	publish ----> topic orders.placed  e1 e2 e3 e4 .....|  appended, not visible yet
//	                                                 head
//	cursor "projector"  filter orders.*     position ^        reads in order, one owner
//	group  "billing"    members share the work, each has its own retries and dead letters
//
// A position is a place in the one order of a namespace. It is opaque: it may be kept,
// compared and handed back, and nothing else. Order holds per key; nobody reads past the
// head, so no event that commits late is skipped.
package stream
