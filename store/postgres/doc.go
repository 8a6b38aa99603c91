// Package postgres keeps a Pawl store in a schema of a Postgres database, 13 or
// newer: the store for more than one machine, and for transactions that hold
// jobs together with rows of the user's own tables.
//
// # Rooms
//
// The package puts rooms together: internal/pg (connections, sessions and
// statements; it names no table), internal/hints, internal/settings and
// internal/workers. Each is built on those before it and knows none after it.
// Jobs and claims are types of this package (job_room.go, claim_room.go) on the
// way to rooms of their own; seam.go says whose each verb is.
//
// # Connections
//
// [Pool] takes the user's pool and opens a small one of its own with the same
// settings, which six roles share (internal/pg/role.go): heartbeat, finish, upkeep,
// claim, work and reading. Each has connections that no other takes, so that neither
// user code nor a flood of enqueues keeps a worker from renewing its lease, and slow
// reads hold up reads alone. The user's pool serves the user's transactions only. One
// more connection listens. [Options.Connections] is all of them together, 2 at least
// (then nothing listens); with [Options.OnlyPool] there are none, and the user may
// exhaust what there is.
//
// Namespaces that one process opens with [NewSpaces] share all of that, and what
// they ask for while they are idle: calls that come at one moment are one statement
// (the together.go of each room, store/internal/meet).
//
// # One round trip
//
// A transition is one statement, or a few sent together: what arrives up to one
// Sync is one transaction of the server. The first statement of each sets what
// the transaction needs (synchronous_commit, lock_timeout and the like) for
// itself alone, so nothing depends on the session and a pooler in transaction
// mode may stand in between ([Options.PollOnly]).
//
// # Group commit
//
// Enqueue and Finish calls of many goroutines share one commit (store/internal/commit). What
// may have to wait for somebody else's lock shares commits of its own. Where one of
// those meets a key that an open transaction holds, the calls that need that very
// key stand in a line of theirs (enqueue_line.go): nobody else waits for a user's
// transaction, nor for those who do (P8).
//
// # Claims
//
// A claim seeks from a remembered place, its frontier, instead of stepping over
// the dead index entries of everything that was claimed before
// (frontier.go, docs/adr/0007-postgres-claims-frontier.md).
package postgres
