package main

// others are functions that run in every window and are not the job's: name, and whose they are.
var others = map[string]string{
	"store/postgres/hints.Room.Listen": "the listener's loop: it hears other processes, and drops what this one said",
	"store/postgres/hints.Room.hear":   "of the same loop",

	"store/postgres/hints.connection.listen": "the connection that listens for all namespaces",
	"store/postgres/hints.connection.pass":   "of the same",
	"store/postgres/hints.connection.wanted": "of the same",
	"store/postgres/hints.hearing.give":      "of the same",
	"store/postgres/hints.hearing.take":      "of the same",
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
	"store/postgres/jobs.Room.enqueue": {"store/postgres/jobs.Room.commitPlain"},
	"store/postgres/jobs.Room.Finish":  {"store/postgres/jobs.Room.commitEnds"},
	// How columns are read and filled is a table of functions.
	"store/sqlite/jobs.Row.Read": {
		"store/sqlite/lite.Query.ColBool", "store/sqlite/lite.Query.ColBlob", "store/sqlite/lite.Query.ColTime", "store/sqlite/lite.Query.ColNull",
		"store/sqlite/jobs.micros", "store/sqlite/jobs.readWords", "job.StoredFailures",
	},
	"store/sqlite/jobs.Transition.insert": {"store/sqlite/lite.Query.Null", "store/sqlite/lite.Query.BlobOrNull", "store/sqlite/lite.Query.TextOrNull", "job.Draft.Ties"},
	"store/postgres/jobs.usedColumns": {
		"store/postgres/jobs.draftIf", "store/postgres/jobs.draftText", "store/postgres/jobs.draftBytes", "store/postgres/jobs.draftDuration", "store/postgres/jobs.draftList",
		"job.Draft.Ties",
	},
	"store/postgres/jobs.insertStep": {"store/postgres/jobs.draftAlways", "store/postgres/jobs.each"},
	"store/postgres/jobs.RowReader.row": {
		"store/postgres/jobs.RowReader.id", "store/postgres/jobs.RowReader.largeBytes", "store/postgres/jobs.RowReader.list", "job.StoredFailures",
		"store/postgres/pg.Columns.Int2", "store/postgres/pg.Columns.Int4", "store/postgres/pg.Columns.Name", "store/postgres/pg.Columns.Time",
	},
	// The engine hears of the revision that an answer carries.
	"runner.Runner.claim": {"settings.Mirror.Heard"},
	// What learns of hints is registered.
	"store/postgres/hints.Room.Tell": {"store/postgres/claims.Room.lower"},
	// The notifier's goroutine.
	"store/postgres/hints.notifier.add": {"store/postgres/hints.Wire.work"},
	// pgx asks, for each connection that it takes from a pool, whether to try it first.
	"store/postgres/pg.Link.Send": {"store/postgres/pg.Link.connect"},
}
