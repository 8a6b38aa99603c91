package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Connections for the user's own transactions. Each of them is a SQLite of its
// own in memory, so they are few.
const (
	userConns     = 16
	userIdleConns = 4
)

// DB is the database for the user's own rows. Its transactions can take jobs
// along (Within). A transaction that may write begins with the write lock, in
// turn with everyone else, and is rolled back when it holds it longer than
// Options.TxLimit. It ends with the store.
//
// No other SQLite library may open the same file in this process: when one of
// them closes it, the other's locks are gone.
func (s *Store) DB() *sql.DB { return s.db }

func openDB(s *shared) *sql.DB {
	db := sql.OpenDB(connector{s})
	db.SetMaxOpenConns(userConns)
	db.SetMaxIdleConns(userIdleConns)
	return db
}

// The driver is not registered under a name: "sqlite3" may be another library's,
// and registering a name twice is a panic at start-up.
type connector struct{ s *shared }

func (c connector) Driver() driver.Driver { return notByName{} }

type notByName struct{}

func (notByName) Open(string) (driver.Conn, error) {
	return nil, errors.New("pawl: this database is opened by its store, not by name")
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.s.file.Connect(ctx, lite.ReaderCache)
	if err != nil {
		return nil, c.s.file.Explain("open", err)
	}
	enforce := "PRAGMA foreign_keys=on"
	if c.s.options.IgnoreForeignKeys {
		enforce = "PRAGMA foreign_keys=off"
	}
	if err := inner.Raw.Exec(enforce); err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return &userConn{s: c.s, conn: inner}, nil
}

// userConn is one connection of DB. The watchdog of a transaction comes from
// another goroutine than its user, so every use holds mu.
type userConn struct {
	s    *shared
	mu   sync.Mutex
	conn *lite.Conn
	tx   *userTx         // the transaction that is open
	t    jobs.Transition // what the store does in it just now
}

var (
	_ driver.Conn               = (*userConn)(nil)
	_ driver.ConnBeginTx        = (*userConn)(nil)
	_ driver.ConnPrepareContext = (*userConn)(nil)
	_ driver.ExecerContext      = (*userConn)(nil)
	_ driver.Validator          = (*userConn)(nil)
	_ driver.SessionResetter    = (*userConn)(nil)
)

// userTx is one transaction of a userConn.
type userTx struct {
	c        *userConn
	readOnly bool
	holder   lite.Holder   // where and when it began
	reads    *lite.Reading // of one that only reads
	limit    *time.Timer
	expired  atomic.Bool   // the watchdog has ended it
	over     bool          // it has ended, one way or another
	came     error         // what it came to, once it is over: nil is a commit
	told     []func(error) // called with that, after it
}

// until is a caller's context that also ends with its transaction's time. The
// connection looks at Err while a statement runs.
type until struct {
	context.Context
	tx *userTx
}

func (u until) Err() error {
	if u.tx != nil && u.tx.expired.Load() {
		return store.ErrTxTooLong
	}
	return u.Context.Err()
}

// use runs f on the connection for one call of its user: alone, stopped by ctx
// or the watchdog, and not after the transaction around it has ended. SQLite
// itself ends a transaction whose statement was interrupted; going on would
// then commit each statement by itself.
func (c *userConn) use(ctx context.Context, f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.tx.goesOn(); err != nil {
		return err
	}
	c.conn.Raw.SetInterrupt(until{ctx, c.tx})
	defer c.conn.Raw.SetInterrupt(context.Background())
	err := f()
	if err == nil && c.tx == nil && !c.conn.Raw.GetAutocommit() {
		err = errors.Join(errors.New("pawl: begin transactions with BeginTx, not with SQL"), c.conn.Exec("ROLLBACK"))
	}
	if err == nil {
		return nil
	}
	if c.tx != nil && c.tx.expired.Load() {
		return store.ErrTxTooLong
	}
	if c.tx == nil && lite.Ambiguous(err) { // the statement was a commit as well
		return fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, lite.WithMeaning(err))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return lite.WithMeaning(err)
}

// goesOn refuses statements of a transaction that has ended underneath its user.
func (tx *userTx) goesOn() error {
	switch {
	case tx == nil:
		return nil
	case tx.expired.Load():
		return store.ErrTxTooLong
	case tx.over || tx.c.conn.Raw.GetAutocommit():
		return fmt.Errorf("pawl: the transaction was rolled back by an earlier error: %w", sql.ErrTxDone)
	}
	return nil
}

func (c *userConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx begins a transaction. Reading only needs no lock.
func (c *userConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	switch sql.IsolationLevel(opts.Isolation) {
	case sql.LevelDefault, sql.LevelSerializable, sql.LevelSnapshot:
	default:
		return nil, fmt.Errorf("pawl: isolation level %s: SQLite is always serializable", sql.IsolationLevel(opts.Isolation))
	}
	tx := &userTx{c: c, readOnly: opts.ReadOnly, holder: lite.Holder{At: lite.Here(), Since: c.s.time.Instant()}}
	if opts.ReadOnly {
		tx.reads = &lite.Reading{What: "a read-only transaction of DB that has not ended", At: tx.holder.At, Since: tx.holder.Since}
		c.s.log.Readings.Begin(tx.reads)
		if err := c.begin(ctx, tx, "BEGIN; PRAGMA query_only=on"); err != nil {
			c.s.log.Readings.End(tx.reads)
			return nil, err
		}
		return tx, nil
	}
	if err := c.s.takeTurn(ctx); err != nil {
		return nil, err
	}
	tx.holder.Since = c.s.time.Instant()
	if err := c.begin(ctx, tx, "BEGIN IMMEDIATE"); err != nil {
		c.s.lock.Release()
		return nil, err
	}
	c.s.lock.Hold(&tx.holder)
	c.mu.Lock() // where the machine is busy, the watchdog may bark before it is known
	tx.limit = time.AfterFunc(c.s.options.TxLimit, tx.expire)
	c.mu.Unlock()
	return tx, nil
}

func (c *userConn) begin(ctx context.Context, tx *userTx, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn.Raw.SetInterrupt(ctx)
	defer c.conn.Raw.SetInterrupt(context.Background())
	if err := c.conn.Raw.Exec(text); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return c.s.file.Explain("begin on", err)
	}
	c.tx = tx
	return nil
}

// expire is the watchdog: it stops what the transaction is doing, rolls it back
// and lets the others write.
func (tx *userTx) expire() {
	tx.expired.Store(true)
	defer tx.tell()
	tx.c.mu.Lock()
	defer tx.c.mu.Unlock()
	if tx.over {
		return
	}
	tx.c.s.logger.Warn("pawl: rolled back a transaction that held the write lock too long", "store", tx.c.s.file.Name,
		"transaction", tx.holder.At.String(), "limit", tx.c.s.options.TxLimit)
	if err := tx.rollback(store.ErrTxTooLong); err != nil {
		tx.c.s.logger.Error("pawl: roll back", "store", tx.c.s.file.Name, "error", err)
	}
}

// rollback ends the transaction, for a reason; mu is held.
func (tx *userTx) rollback(why error) error {
	defer tx.end(why)
	if tx.c.conn.Raw.GetAutocommit() {
		return nil
	}
	return tx.c.conn.Raw.Exec("ROLLBACK")
}

// end gives back what the transaction held; mu is held.
func (tx *userTx) end(came error) {
	tx.over, tx.came = true, came
	if tx.readOnly {
		tx.c.s.log.Readings.End(tx.reads)
		if err := tx.c.conn.Raw.Exec("PRAGMA query_only=off"); err != nil {
			tx.c.s.logger.Error("pawl: end a read-only transaction", "store", tx.c.s.file.Name, "error", err)
		}
		return
	}
	tx.limit.Stop()
	tx.c.s.lock.Hold(nil)
	tx.c.s.lock.Release()
}

// tell tells those who want to know how the transaction ended. It is called
// without any lock, by whoever may have ended it; the first call does it.
func (tx *userTx) tell() {
	tx.c.mu.Lock()
	told, came := tx.told, tx.came
	tx.told = nil
	tx.c.mu.Unlock()
	for _, f := range told {
		f(came)
	}
}

// Commit ends the transaction; nil means that it is on disk.
func (tx *userTx) Commit() error {
	defer tx.tell()
	tx.c.mu.Lock()
	defer tx.c.mu.Unlock()
	defer func() { tx.c.tx = nil }()
	if err := tx.goesOn(); err != nil {
		if !tx.over {
			tx.end(err)
		}
		return err
	}
	if err := tx.c.conn.Raw.Exec("COMMIT"); err != nil {
		err = tx.c.s.file.CommitError(err)
		return errors.Join(err, tx.rollback(err))
	}
	tx.end(nil)
	if !tx.readOnly {
		tx.c.s.log.Watch(tx.c.conn)
	}
	return nil
}

// Rollback ends the transaction without a trace.
func (tx *userTx) Rollback() error {
	defer tx.tell()
	tx.c.mu.Lock()
	defer tx.c.mu.Unlock()
	defer func() { tx.c.tx = nil }()
	if tx.over {
		return nil
	}
	return tx.rollback(errRolledBack)
}

var errRolledBack = errors.New("pawl: the transaction was rolled back")

// ResetSession gives a connection to its next user only when nothing is open.
func (c *userConn) ResetSession(context.Context) error {
	if !c.IsValid() {
		return driver.ErrBadConn
	}
	return nil
}

// IsValid reports whether the connection may go back into the pool.
func (c *userConn) IsValid() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tx == nil && c.conn.Raw.GetAutocommit()
}

// Close ends the connection and whatever its user left open.
func (c *userConn) Close() error {
	c.mu.Lock()
	tx := c.tx
	c.mu.Unlock()
	var err error
	if tx != nil {
		err = tx.Rollback()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(err, c.conn.Close())
}
