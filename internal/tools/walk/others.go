package main

// others are functions that run in every window and are not the job's: name, and whose they are.
var others = map[string]string{
	"store/postgres/hints.Room.Listen": "the listener's loop: it hears other processes, and drops what this one said",
	"store/postgres/hints.Room.hear":   "of the same loop",
}

// handOvers are calls that the text of a function does not show, since they go through a channel or a function value.
var handOvers = map[string][]string{
	// A handler is bound when it is registered.
	"pawl.handler.Work": {"pawl.catching", "pawl.Handle"},
	// The committer's goroutine takes a call over, and has the store's functions from its options.
	"store/commit.Committer.Do": {"store/commit.Call.shared", "store/commit.Committer.work"},
	"store/commit.Committer.work": {
		"store/sqlite.writer.open", "store/sqlite.writer.commit", "store/sqlite.writer.release",
		"store/postgres/jobs.newGather",
	},
	"store/commit.Committer.yield": {"store/commit.UntilHalf", "store/commit.UntilAll"},
	// What each gather commits.
	"store/postgres/jobs.Room.enqueueOnce": {"store/postgres/jobs.Room.commitPlain"},
	"store/postgres/jobs.Room.Finish":      {"store/postgres/jobs.Room.commitFinishes"},
	// How a draft fills columns is a table of functions.
	"store/postgres/jobs.usedColumns": {"store/postgres/jobs.list"},
	"store/postgres/jobs.insertStep":  {"store/postgres/jobs.column"},
	// The notifier's goroutine.
	"store/postgres/hints.notifier.add": {"store/postgres/hints.notifier.work"},
	// pgx asks, for each connection that it takes from a pool, whether to try it first.
	"store/postgres/pg.DB.Send": {"store/postgres/pg.DB.connect"},
}
