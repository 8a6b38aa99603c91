// Package log keeps the events of a namespace. It owns the tables event, topic, epoch,
// event_writer, key_version, topic_trim, delayed, seen, cursor and cursor_at, and the sequence event_seq.
//
// # Why nobody skips an event
//
// Numbers are taken before a commit and seen after it, so the newest number that can be
// seen says nothing of those below it. An appending transaction therefore first takes a
// number n and a shared advisory lock on it, its mark, and only then numbers its events,
// all of them above n. Who reads asks, in this order and in separate instants,
//
//  1. for the last number of the sequence,
//  2. for the lowest mark in pg_locks: the head is the number before it, or that of 1,
//  3. in a later statement with a later snapshot, for the rows up to the head.
//
// What is not marked at 2 has either committed, because locks are released after a commit
// can be seen, or takes its mark after 2 and its numbers after 1: above the head. Numbers
// that were rolled back are holes, and nobody waits for them.
//
// A head holds for every process until the server crashes: numbers that were taken and not
// used may be given again then. So what is handed out and kept are positions of events, which
// are on disk before anybody sees them, and never the head. On another server (a restored
// backup, a promoted standby) also numbers of events may be given again: epoch.go.
//
// An advisory lock names 32 bits, so a mark is the lower 31 bits of its number beside a
// number of the namespace; the lowest is found by its distance from the sequence.
package log
