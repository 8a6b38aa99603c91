// Bench does the same work on Pawl and on its peers in one run, and says by what ratio they differ.
//
//	go run .                             # every work whose servers are there; writes out/latest.json
//	go run . -list                       # the works, and what each compares
//	go run . -only sqlite-drain-100 -n 5
//	go run . -only postgres-drain-100 -n 1 -costs        # WAL bytes, statements and connections
//
// Postgres and Redis are found by PAWL_TEST_POSTGRES and PAWL_TEST_REDIS, which internal/testenv sets
// (`make bench` at the top of the repository). SQLite works need nothing.
//
// # What makes a ratio fair
//
// Absolute figures move from machine to machine and from minute to minute, so only ratios of one run count.
// The systems of a work take turns, round by round, and each round begins with another one; the median of the
// rounds counts and the spread is shown.
//
// Every single run has a process of its own: no heap, goroutine or page cache setting of one system reaches
// another, peak memory is that system's alone, and a peer that hangs is ended at the limit without ending the
// table. A backlog to be drained is written by yet another process, so that memory used for filling does not count.
//
// Both sides are equally durable: SQLite in WAL mode with synchronous=FULL, Postgres with fsync and
// synchronous_commit on, Redis with appendfsync=always. A job counts as finished when its final state is
// committed, not when its handler returns. Peers get their best documented settings; the file of each system
// says which.
package main
