package archtest

import (
	"slices"
	"strings"
)

// modulePath is what every package of the root module starts with.
const modulePath = "github.com/pawlwork/pawl"

// A layer is one line of the table: a place in the root module and what may be below it.
//
// Names are folders of this repository ("." is the facade, "x/..." is x and all below it) or import paths.
// The rules are about code that ships: test files may import what they like.
type layer struct {
	at string
	is string
	// may names everything of this project, and every other module, that the layer imports directly.
	// The standard library is open to all, save what never names.
	may []string
	// never names what must not be linked in at all, not even through another package.
	never []string
}

// The groups that the table speaks of.
var (
	stores  = []string{"store/sqlite/...", "store/postgres/...", "stream/redis/...", "stream/nats/..."}
	drivers = []string{"github.com/ncruces/go-sqlite3/...", "github.com/jackc/pgx/v5/...", "github.com/redis/...", "github.com/nats-io/..."}
	sqlHTTP = []string{"database/sql", "net/http"}
	domain  = []string{"job/...", "stream", "flow", "store"}
	loops   = []string{
		"internal/runner/...", "internal/member/...", "internal/meter/...", "internal/keeper/...", "internal/settings/...", "internal/schedules/...",
		"internal/wake/...", "internal/rate/...", "internal/tail/...", "internal/consumer/...", "internal/feed/...",
	}

	uuid   = "github.com/google/uuid"
	sqlite = "github.com/ncruces/go-sqlite3/..."
	pgx    = "github.com/jackc/pgx/v5/..."
)

// layers is the design's picture, top to bottom. Where two lines fit a package, the longer one holds.
// A package that no line fits fails the test: say here where it belongs before it grows.
var layers = []layer{
	{
		at: "examples/...", is: "whole programs, written as a user writes them",
		may: list(".", "job/...", "stream", "flow", "batch", "supervise", "kinds/...", "store/sqlite", "store/postgres", "pawltest", sqlite, pgx, uuid),
	},
	// Built-in kinds of jobs: who does not import one has nothing of it, and none brings a driver along.
	{
		at: "kinds/internal/guard", is: "ends programs and all that they start; knows nothing of jobs",
		never: list(".", "store/...", loops, stores, drivers, sqlHTTP),
	},
	{
		at: "kinds/...", is: "built-in kinds of jobs, written against the facade as a user's are",
		may:   list(".", "job/...", "kinds/internal/guard"),
		never: list(stores, drivers),
	},
	{
		at: "pawltest/...", is: "for users' tests: an engine in memory and virtual time, or on a store they hand over",
		may:   list(".", domain, loops, "store/sqlite", "batch", "supervise", "pawltest/...", uuid),
		never: list("store/postgres/...", pgx),
	},
	{
		at: ".", is: "the facade; it is handed a store and links no driver",
		may:   list(domain, loops, "internal/boot", "batch", "supervise", uuid),
		never: list(stores, drivers, "kinds/..."),
	},
	{
		at: "internal/runner/...", is: "claims, runs handlers, finishes",
		may:   list(domain, "batch", "supervise", "internal/boot", "internal/wake/...", "internal/member/...", "internal/meter/...", "internal/runner/...", uuid),
		never: list(".", stores, drivers),
	},
	{
		at: "internal/member/...", is: "registers the worker, renews its lease, notices steps of the clock; knows nothing of handlers",
		may:   list(domain, "supervise", "internal/boot", "internal/member/...", uuid),
		never: list(".", stores, drivers, "internal/runner/...", "internal/keeper/...", "internal/wake/..."),
	},
	{
		at: "internal/meter/...", is: "measures what the process does; is told, and asks nobody",
		may:   list(domain, "supervise", "internal/meter/..."),
		never: list(".", stores, drivers, "internal/runner/...", "internal/keeper/...", "internal/member/...", "internal/wake/..."),
	},
	{
		at: "internal/keeper/...", is: "upkeep: rescue, deadlines, retention, sweep",
		may:   list(domain, "batch", "supervise", "internal/boot", "internal/wake/...", "internal/keeper/...", uuid),
		never: list(".", stores, drivers),
	},
	{
		at: "internal/settings/...", is: "follows what is declared and set, and finds queues by pattern; others act on it",
		may:   list(domain, "supervise", "internal/wake/...", "internal/settings/..."),
		never: list(".", stores, drivers, "internal/runner/...", "internal/keeper/...", "internal/member/..."),
	},
	{
		at: "internal/schedules/...", is: "fires schedules when they are due",
		may:   list(domain, "supervise", "internal/wake/...", "internal/schedules/..."),
		never: list(".", stores, drivers, "internal/runner/...", "internal/keeper/...", "internal/member/..."),
	},
	{
		at: "internal/rate/...", is: "hands out tokens of limits within one process",
		may:   list(domain, "internal/rate/..."),
		never: list(".", stores, drivers, "internal/runner/...", "internal/keeper/...", "internal/member/..."),
	},
	{
		at: "internal/tail/...", is: "tells readers of the log that there may be more",
		may:   list(domain, "internal/wake/...", "internal/tail/..."),
		never: list(".", stores, drivers, "internal/runner/...", "internal/keeper/...", "internal/member/..."),
	},
	{
		at: "internal/consumer/...", is: "runs subscriptions over any backend of streams",
		may:   list("job", "stream", "supervise"),
		never: list(".", "store/...", stores, drivers, sqlHTTP, "internal/runner/...", "internal/keeper/...", "internal/member/..."),
	},
	{
		at: "internal/feed", is: "makes a store's groups a backend of streams",
		may:   list(domain, "internal/wake/...", "internal/tail/..."),
		never: list(".", stores, drivers, "internal/runner/...", "internal/keeper/...", "internal/member/..."),
	},
	{
		at: "internal/feed/feedtest", is: "holds the groups of a store against streamtest",
		may:   list(domain, "internal/wake/...", "internal/tail/...", "internal/feed", "stream/streamtest"),
		never: list(".", stores, drivers),
	},
	{
		at: "internal/wake/...", is: "hints that work may exist",
		may:   list(domain, "supervise", "internal/wake/..."),
		never: list(".", stores, drivers),
	},

	{
		at: "internal/boot", is: "whether a process of this machine is dead; knows nothing of jobs",
		never: list(".", "store/...", loops, stores, drivers, sqlHTTP),
	},

	// The seam speaks the vocabulary (a claim returns jobs), so store stands on job, stream and flow, never the
	// other way round: the pure rules know of no store.
	{
		at: "store", is: "the seam: whole transitions over slices",
		may:   list("job/...", "stream", "flow", uuid),
		never: list(".", loops, stores, drivers, sqlHTTP),
	},
	{
		at: "flow", is: "graphs of jobs: vocabulary and pure rules",
		may:   list("job/...", uuid),
		never: list(".", "store/...", loops, stores, drivers, sqlHTTP),
	},
	{
		at: "stream", is: "the event log: vocabulary and pure rules",
		may:   list("job", uuid), // what is out of bounds is said in the same words
		never: list(".", "store/...", loops, stores, drivers, sqlHTTP),
	},
	{
		at: "stream/memory", is: "a backend in memory, for tests",
		may:   list("job", "stream"),
		never: list(".", "store/...", loops, stores, drivers, sqlHTTP),
	},
	{
		at: "stream/streamtest", is: "the conformance suite of backends; it never asks one its name",
		may:   list("job", "stream"),
		never: list(".", "store/...", loops, stores, drivers),
	},
	{
		at: "job/...", is: "jobs: vocabulary and pure rules",
		may:   list("job/...", uuid),
		never: list(".", "store/...", loops, stores, drivers, sqlHTTP),
	},

	// What both stores need and what needs neither of them: it is tested without a database.
	{
		at: "store/internal/commit", is: "group commit of both stores; knows no database",
		never: list(".", domain, loops, stores, drivers, sqlHTTP),
	},
	{
		at: "store/internal/meet", is: "calls of several namespaces as one; knows no database",
		never: list(".", domain, loops, stores, drivers, sqlHTTP),
	},

	{
		at: "store/internal/turns", is: "whose turn it is, of gates; knows no database",
		never: list(".", domain, loops, stores, drivers, sqlHTTP),
	},

	{
		at: "store/internal/crews", is: "who shares totals, by the version of the registry; knows no database",
		may:   list("job/...", "store"),
		never: list(".", loops, stores, drivers, sqlHTTP),
	},

	{
		at: "store/internal/table/...", is: "the tables of a store as data; knows no database",
		may:   list("store/internal/table"),
		never: list(".", domain, loops, stores, drivers, sqlHTTP),
	},

	{
		at: "store/internal/check", is: "what the checks of both stores share: the walk, the sentences; knows no database",
		may:   list("job/...", "store"),
		never: list(".", loops, stores, drivers, sqlHTTP),
	},

	// Within(e, tx) gives a *pawl.Tx, so a store may know the facade; it has no business with the loops behind it.
	{
		at: "store/sqlite/...", is: "the embedded store: the only SQLite code",
		may: list(".", domain, "batch", "supervise", "store/internal/check", "store/internal/commit", "store/internal/meet", "store/internal/crews",
			"store/internal/table", "store/sqlite/...", sqlite, uuid),
		never: list("store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/lite", is: "SQLite as its store uses it; names no table of ours",
		may:   list("job/...", "store", "store/internal/table", sqlite),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/hints", is: "the first room: commits of other processes",
		may:   list("job/...", "store", rooms("store/sqlite", "lite", "hints")),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/settings", is: "pauses, and what operators did",
		may:   list("job/...", "store", "store/internal/table", rooms("store/sqlite", "lite", "settings")),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/limits", is: "buckets of rates",
		may:   list("job/...", "store", "store/internal/table", rooms("store/sqlite", "lite", "limits")),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/workers", is: "the registry",
		may:   list("job/...", "store", "store/internal/crews", "store/internal/table", rooms("store/sqlite", "lite", "workers")),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/jobs", is: "jobs from enqueue to purge",
		may:   list("job/...", "store", "store/internal/table", rooms("store/sqlite", "lite", "jobs")),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/claims", is: "claims: leases ready jobs",
		may:   list("job/...", "store", "store/internal/table", "store/internal/turns", rooms("store/sqlite", "lite", "claims")),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/lists", is: "what people ask about jobs: the last room before the store",
		may:   list("job/...", "store", rooms("store/sqlite", "lite", "lists")),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/intents", is: "what users' transactions want done after their commit",
		may:   list("job/...", "store", "store/internal/table", rooms("store/sqlite", "lite", "intents")),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/operations", is: "what operators do to many jobs, page by page",
		may:   list("job/...", "store", "store/internal/table", rooms("store/sqlite", "lite", "operations")),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/schedules", is: "schedules: how far they have come, and their jobs",
		may:   list("job/...", "store", "store/internal/table", rooms("store/sqlite", "lite", "schedules")),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/sqlite/internal/metrics", is: "what processes measure",
		may:   list("job/...", "store", "store/internal/table", "store/sqlite/internal/lite"),
		never: list(".", "store/postgres/...", pgx),
	},
	{
		at: "store/postgres/...", is: "the cluster store: the only Postgres code",
		may: list(".", domain, "batch", "supervise", "store/internal/check", "store/internal/commit", "store/internal/table",
			"store/postgres/...", pgx, uuid),
		never: list("store/sqlite/...", sqlite),
	},
	// Its rooms, each built on those before it; none knows the store or a later one.
	{
		at: "store/postgres/internal/pg", is: "connections, sessions, statements; names no table of ours",
		may:   list(domain, "store/internal/meet", "store/internal/table", pgx),
		never: list("."),
	},
	{
		at: "store/postgres/internal/hints", is: "what tells claims of jobs that became ready",
		may:   list(domain, "store/internal/table", "store/postgres/internal/pg", pgx, uuid),
		never: list("."),
	},
	{
		at: "store/postgres/internal/settings", is: "what operators have set, and who did what",
		may:   list(domain, "store/internal/table", "store/postgres/internal/pg", "store/postgres/internal/hints", pgx),
		never: list("."),
	},
	{
		at: "store/postgres/internal/limits", is: "buckets of rates",
		may:   list(domain, "store/internal/table", "store/postgres/internal/pg", "store/postgres/internal/hints", "store/postgres/internal/settings", pgx),
		never: list("."),
	},
	{
		at: "store/postgres/internal/workers", is: "the registry and its leases",
		may: list(domain, "store/internal/crews", "store/internal/table", "store/postgres/internal/pg", "store/postgres/internal/hints",
			"store/postgres/internal/settings", pgx),
		never: list("."),
	},
	{
		at: "store/postgres/internal/jobs", is: "jobs, and all that moves them but a claim",
		may: list(domain, "store/internal/commit", "store/internal/table", "store/postgres/internal/pg", "store/postgres/internal/hints", "store/postgres/internal/settings",
			"store/postgres/internal/workers", pgx),
		never: list("."),
	},
	{
		at: "store/postgres/internal/claims", is: "leases ready jobs to workers",
		may: list(domain, "store/internal/table", "store/internal/turns", "store/postgres/internal/pg", "store/postgres/internal/hints", "store/postgres/internal/settings",
			"store/postgres/internal/workers", "store/postgres/internal/jobs", pgx),
		never: list("."),
	},
	{
		at: "store/postgres/internal/lists", is: "what people ask about jobs",
		may: list(domain, "store/internal/table", "store/postgres/internal/pg", "store/postgres/internal/hints", "store/postgres/internal/settings",
			"store/postgres/internal/workers", "store/postgres/internal/jobs", pgx),
		never: list("."),
	},
	{
		at: "store/postgres/internal/intents", is: "what users' transactions want done after their commit",
		may: list(domain, "store/internal/table", "store/postgres/internal/pg", "store/postgres/internal/hints", "store/postgres/internal/settings",
			"store/postgres/internal/workers", "store/postgres/internal/jobs", pgx),
		never: list("."),
	},
	{
		at: "store/postgres/internal/operations", is: "what operators do to many jobs, page by page",
		may: list(domain, "store/internal/table", "store/postgres/internal/pg", "store/postgres/internal/hints", "store/postgres/internal/settings",
			"store/postgres/internal/workers", "store/postgres/internal/jobs", "store/postgres/internal/lists", pgx),
		never: list("."),
	},
	{
		at: "store/postgres/internal/schedules", is: "schedules: how far they have come, and their jobs",
		may: list(domain, "store/internal/table", "store/postgres/internal/pg", "store/postgres/internal/hints", "store/postgres/internal/settings",
			"store/postgres/internal/workers", "store/postgres/internal/jobs", pgx),
		never: list("."),
	},
	{
		at: "store/postgres/internal/metrics", is: "what processes measure",
		may:   list(domain, "store/internal/table", "store/postgres/internal/pg", "store/postgres/internal/workers", "store/postgres/internal/jobs", pgx),
		never: list("."),
	},
	{
		at: "store/storetest/...", is: "the conformance suite; it never asks a store its name",
		may: list(domain, "store/storetest/...", "internal/need/...", uuid,
			"pgregory.net/rapid", "github.com/anishathalye/porcupine", "github.com/google/go-cmp/..."),
		never: list(stores, "github.com/ncruces/go-sqlite3/..."),
	},

	// Free-standing: a team may import only these, and gets the standard library with them and nothing else.
	{
		at: "batch/...", is: "keyed micro-batching",
		may:   list("batch/..."),
		never: list(sqlHTTP),
	},
	{
		at: "supervise/...", is: "a tree of named services",
		may:   list("supervise/..."),
		never: list(sqlHTTP),
	},

	{at: "internal/archtest", is: "these rules"},
	{at: "internal/breaks/...", is: "proof that the tests can fail", may: list("internal/breaks")},
	{at: "internal/fault/...", is: "tests that kill, stop and starve whole processes", may: list(".", domain, "store/sqlite", "store/postgres", "internal/need/...", pgx)},
	{at: "internal/need/...", is: "what tests ask for, and the only place that skips", may: list("internal/need/...", pgx)},
}

// roomOrder is how the rooms of a store stand: each may know those before it, never a later one.
var roomOrder = []string{"hints", "settings", "limits", "workers", "jobs", "claims", "lists", "intents", "operations", "schedules", "metrics"}

// rooms names what a room of a store stands on: the package of its database and the rooms before it.
func rooms(store, database, room string) []string {
	below := []string{store + "/internal/" + database}
	for _, earlier := range roomOrder {
		if earlier == room {
			break
		}
		below = append(below, store+"/internal/"+earlier)
	}
	return below
}

// list flattens names and groups of names.
func list(parts ...any) []string {
	var names []string
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			names = append(names, part)
		case []string:
			names = append(names, part...)
		}
	}
	return names
}

// layerOf finds the line that holds for a place in the repository.
func layerOf(table []layer, place string) (layer, bool) {
	var found layer
	var ok bool
	for _, line := range table {
		if fits(line.at, place) && (!ok || len(line.at) > len(found.at)) {
			found, ok = line, true
		}
	}
	return found, ok
}

// fits reports whether a name of the table means the place or import path.
func fits(name, place string) bool {
	stem, below := strings.CutSuffix(name, "/...")
	return place == stem || below && strings.HasPrefix(place, stem+"/")
}

func fitsAny(names []string, place string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return fits(name, place) })
}

// place turns an import path of the root module into its folder. Other import paths stay as they are.
func place(importPath string) string {
	if importPath == modulePath {
		return "."
	}
	if below, ok := strings.CutPrefix(importPath, modulePath+"/"); ok {
		return below
	}
	return importPath
}

// standard reports whether an import path is the standard library's: its first element is no host name.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}
