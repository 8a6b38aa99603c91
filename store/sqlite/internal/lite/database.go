package lite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlwork/pawl/job"
)

// Database is where a SQLite database is and how its connections are set.
type Database struct {
	Name        string // for messages
	Path        string // for SQLite
	URI         bool   // path is a URI
	Memory      bool
	BusyLimit   time.Duration // how long another process's lock is waited for
	Synchronous string        // as PRAGMA synchronous has it
}

// Page cache of a connection: negative numbers are KiB, as SQLite has it.
const (
	WriterCache = -16_384
	ReaderCache = -4_096
	SmallCache  = -256
)

// Connect opens one connection with a page cache of that size.
func (d *Database) Connect(ctx context.Context, cache int) (*Conn, error) {
	raw, err := d.openRaw(ctx)
	if err != nil {
		return nil, err
	}
	c := &Conn{Raw: raw, queries: map[string]*Query{}}
	if err := raw.Exec(fmt.Sprintf("PRAGMA cache_size=%d", cache)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// openRaw opens one connection with the settings all of them share.
func (d *Database) openRaw(ctx context.Context) (*sqlite3.Conn, error) {
	flags := sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE
	if d.URI {
		flags |= sqlite3.OPEN_URI
	}
	raw, err := sqlite3.OpenFlags(d.Path, flags)
	if err != nil {
		return nil, err
	}
	set := func() error {
		limit := d.BusyLimit
		if err := raw.BusyHandler(func(ctx context.Context, count int) bool { return waitBusy(ctx, count, limit) }); err != nil {
			return err
		}
		// A plan goes by its text alone. Otherwise SQLite prepares a statement with LIMIT ?
		// anew each time that it is bound.
		if _, err := raw.Config(sqlite3.DBCONFIG_ENABLE_QPSG, true); err != nil {
			return err
		}
		// trusted_schema: functions in a foreign file's views and triggers may not reach further than SQL.
		return raw.Exec("PRAGMA synchronous=" + d.Synchronous + "; PRAGMA trusted_schema=off; PRAGMA wal_autocheckpoint=2000; " +
			// A log that was large once is cut when it begins anew: its space goes back, and its size tells again.
			fmt.Sprintf("PRAGMA journal_size_limit=%d", LogLimit))
	}
	raw.SetInterrupt(ctx)
	err = set()
	raw.SetInterrupt(context.Background())
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return raw, nil
}

// How another process's lock is waited for. SQLite has no queue of its own for
// it, so whoever looks more often wins; short steps keep two processes fair.
const busyStep = 500 * time.Microsecond

// waitBusy waits one step for another's lock and says whether to try again.
func waitBusy(ctx context.Context, count int, limit time.Duration) bool {
	if time.Duration(count)*busyStep >= limit {
		return false
	}
	wait := time.NewTimer(busyStep)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wait.C:
		return true
	}
}

// UseWAL turns the write-ahead log on, which stays with the file. Stores in
// memory have no log. Of several who do it to a new file at once, all but one
// are told that it is locked, and SQLite does not ask the busy handler: they
// would wait for each other. So it is asked here.
func (d *Database) UseWAL(c *Conn) error {
	if d.Memory {
		return nil
	}
	for count := 0; ; count++ {
		q := c.Query("PRAGMA journal_mode=WAL")
		mode := ""
		if q.Step() {
			mode = q.ColText(0)
		}
		switch err := q.Done(); {
		case errors.Is(err, sqlite3.BUSY) && waitBusy(c.Raw.GetInterrupt(), count, d.BusyLimit):
		case err != nil:
			return err
		case mode != "wal":
			return fmt.Errorf("open %s: journal mode is %q, want wal", d.Name, mode)
		default:
			return nil
		}
	}
}

// Explain gives an error of SQLite its meaning for a caller. What is being done
// goes into the text once; errors that have a meaning already are left alone.
func (d *Database) Explain(doing string, err error) error {
	if err == nil || meant(err) {
		return err
	}
	return fmt.Errorf("%s %s: %w", doing, d.Name, WithMeaning(err))
}

// CommitError says what a failed COMMIT means. Nearly always nothing was done;
// see ambiguous for the rest.
func (d *Database) CommitError(err error) error {
	if Ambiguous(err) {
		return fmt.Errorf("commit to %s: %w: %w", d.Name, job.ErrOutcomeUnknown, WithMeaning(err))
	}
	return d.Explain("commit to", err)
}
