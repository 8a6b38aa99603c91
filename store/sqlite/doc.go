// Package sqlite keeps a Pawl store in one SQLite file, or in memory. Nothing
// has to be installed: the database is part of the process.
//
// # One writer
//
// SQLite lets one connection write at a time. All transitions go through one
// writer, which runs what many goroutines ask for in one transaction and one
// flush (writer.go). Readers have connections of their own and never wait for
// it. A user's transaction ([Store.DB], [Store.Begin]) takes the same lock in
// turn, first come first served, and may hold it for at most the limit in
// [Options]: nobody can stop the others for longer.
//
// # Durability
//
// Journal mode is WAL with synchronous=FULL: a nil error means that the commit
// is on disk (P1). [Options] names what is weaker.
//
// # Several processes
//
// Any number of processes on one machine may open the same file. A network
// file system is refused, because its locks cannot be trusted.
//
// Namespaces that one process opens with [NewSpaces] share the writer, the readers
// and the handle.
//
// # Rooms
//
// This package puts rooms together: it opens and closes, runs their verbs in the
// writer's transaction or in a user's, and has the driver behind [Store.DB]. What
// is SQLite and not ours is internal/lite. On it stand, each knowing only those
// before it: internal/hints, settings, workers, jobs and claims, each with its own
// tables, statements and rules of Check.
package sqlite
