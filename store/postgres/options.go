package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Options are the settings of a store; zero fields mean the default.
type Options struct {
	// Schema holds Pawl's tables ["pawl"]. MigrateAuto makes it.
	Schema string
	// PollOnly makes the store usable behind a pooler in transaction mode: it
	// does not listen, prepares no statements by name and keeps nothing in the
	// session. Work that another process enqueued is then found by polling.
	PollOnly bool
	// Connections bounds the connections that the store makes for itself [10]: one
	// that listens, and the rest for six roles (heartbeat, finish, upkeep, claim, what
	// callers write, reading). From 7 on each role has one that no other takes. With 2,
	// the least, nothing listens, as in PollOnly: one carries heartbeat, finish and
	// upkeep, the other everything else. An idle process has about three open.
	Connections int
	// ReadLimit ends a list, a count or a search that takes longer [10 s], also where
	// it waits for others to end: one of eight connections is what they may have at
	// once. It is answered ErrBusy.
	ReadLimit time.Duration
	// OnlyPool makes the store use the caller's pool for everything and no
	// connection of its own; it does not listen then. What it costs: whoever
	// exhausts the pool also holds up heartbeats, and a worker that cannot beat is
	// declared lost. A transaction sets what it needs anew each time. The pool must
	// have two connections at least. Connections means nothing then, and is refused.
	OnlyPool bool
	// BusyLimit is how long a call waits for a row that somebody's open
	// transaction holds before it is answered ErrBusy [30 s]. Only calls that
	// need that very row wait.
	BusyLimit time.Duration
	// TxIdle ends a transaction of Begin that does nothing for this long [25 s, or
	// five sixths of Config.LostAfter if that is less]. It has to be below
	// Config.LostAfter, after which a worker is lost, because the job of a stuck
	// process cannot be given to another while its row is locked.
	TxIdle time.Duration
}

const maxIdentifier = 63 // bytes, of Postgres

// withDefaults fills zero fields. lostAfter is that of the process, 0 when it is
// not known.
func (o Options) withDefaults(lostAfter time.Duration) Options {
	o.Schema = cmp.Or(o.Schema, "pawl")
	o.Connections = cmp.Or(o.Connections, 10)
	o.ReadLimit = cmp.Or(o.ReadLimit, 10*time.Second)
	o.BusyLimit = cmp.Or(o.BusyLimit, 30*time.Second)
	if o.TxIdle == 0 {
		o.TxIdle = 25 * time.Second
		if lostAfter > 0 {
			o.TxIdle = min(o.TxIdle, lostAfter/6*5)
		}
	}
	return o
}

// listens reports whether the store has a connection that listens.
func (o Options) listens() bool { return !o.PollOnly && !o.OnlyPool && o.Connections > 2 }

// shared is how many connections the roles share; given is the caller's pool.
func (o Options) shared(given *pgxpool.Config) int {
	switch {
	case o.OnlyPool:
		return int(given.MaxConns)
	case o.listens():
		return o.Connections - 1
	}
	return o.Connections
}

// sorting is how many connections may sort shared commits out at one time: most
// of their looks wait for a key, and other commits need one, too.
func (o Options) sorting(given *pgxpool.Config) int {
	return min(max(pg.Share(nil, o.shared(given)).Work.Size()-1, 1), 4)
}

// checkGiven looks at what only the options as they were given can tell.
func (o Options) checkGiven() error {
	if !o.OnlyPool {
		return nil
	}
	if o.Connections != 0 {
		return job.Invalid("Options.Connections", o.Connections, "must be 0 with Options.OnlyPool: the store makes no connections then, the pool's own size counts")
	}
	return nil
}

// check reports every fault of options with their defaults at once.
func (o Options) check(lostAfter time.Duration) error {
	var errs []error
	bad := func(field string, value any, bound string) { errs = append(errs, job.Invalid(field, value, bound)) }
	if len(o.Schema) > maxIdentifier || strings.ContainsFunc(o.Schema, unicode.IsControl) || !utf8.ValidString(o.Schema) {
		bad("schema", o.Schema, fmt.Sprintf("must have 1..%d bytes of UTF-8 without control characters", maxIdentifier))
	}
	if strings.HasPrefix(o.Schema, "pg_") {
		bad("schema", o.Schema, "must not start with pg_, which Postgres keeps for itself")
	}
	if o.Connections < 2 || o.Connections > 200 {
		bad("connections", o.Connections, "must be 2..200")
	}
	if o.ReadLimit < 100*time.Millisecond || o.ReadLimit > 10*time.Minute {
		bad("read limit", o.ReadLimit, "must be 100ms..10m")
	}
	if o.BusyLimit < 100*time.Millisecond || o.BusyLimit > 10*time.Minute {
		bad("busy limit", o.BusyLimit, "must be 100ms..10m")
	}
	if o.TxIdle < 100*time.Millisecond || o.TxIdle > time.Hour {
		bad("tx idle", o.TxIdle, "must be 100ms..1h")
	} else if lostAfter > 0 && o.TxIdle >= lostAfter {
		bad("Options.TxIdle", o.TxIdle, fmt.Sprintf("must be below Config.LostAfter, %v: the job of a stuck process stays locked until then", lostAfter))
	}
	return errors.Join(errs...)
}

// checkPool refuses a pool that cannot carry the store's own work.
func (o Options) checkPool(config *pgxpool.Config) error {
	switch {
	case !o.OnlyPool:
		return nil
	case config.MaxConns < 2:
		return job.Invalid("pool size", config.MaxConns, "must be 2 or more with OnlyPool")
	case pg.Guesses(config.ConnConfig):
		return job.Invalid("pool's query mode", config.ConnConfig.DefaultQueryExecMode, "must be one that asks the server for types with OnlyPool: cache_statement, cache_describe or describe_exec")
	}
	return nil
}
