package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// conn is one connection with its prepared statements. It is used by one
// goroutine at a time.
type conn struct {
	raw     *sqlite3.Conn
	queries map[string]*query
}

func (s *Store) connect(ctx context.Context, cachePages int) (*conn, error) {
	raw, err := s.openRaw(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{raw: raw, queries: map[string]*query{}}
	if err := raw.Exec(fmt.Sprintf("PRAGMA cache_size=%d", cachePages)); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// openRaw opens one connection with the settings all of them share.
func (s *Store) openRaw(ctx context.Context) (*sqlite3.Conn, error) {
	flags := sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE
	if s.uri {
		flags |= sqlite3.OPEN_URI
	}
	raw, err := sqlite3.OpenFlags(s.path, flags)
	if err != nil {
		return nil, err
	}
	set := func() error {
		limit := s.options.BusyLimit
		if err := raw.BusyHandler(func(ctx context.Context, count int) bool { return waitBusy(ctx, count, limit) }); err != nil {
			return err
		}
		// trusted_schema: functions in a foreign file's views and triggers may not reach further than SQL.
		return raw.Exec("PRAGMA synchronous=" + s.options.Synchronous.pragma() + "; PRAGMA trusted_schema=off; PRAGMA wal_autocheckpoint=2000; " +
			// A log that was large once is cut when it begins anew: its space goes back, and its size tells again.
			fmt.Sprintf("PRAGMA journal_size_limit=%d", logLimit))
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

func (c *conn) close() error {
	for _, q := range c.queries {
		q.stmt.Close()
	}
	c.queries = nil
	return c.raw.Close()
}

// query returns the prepared statement for a text, ready to be bound. Statements
// stay prepared as long as the connection lives.
func (c *conn) query(text string) *query {
	q := c.queries[text]
	if q == nil {
		q = c.once(text)
		if q.stmt != nil {
			c.queries[text] = q
		}
		return q
	}
	q.bound, q.err = 0, nil
	return q
}

// once prepares a statement that will not be seen again; done closes it.
func (c *conn) once(text string) *query {
	stmt, _, err := c.raw.Prepare(text)
	return &query{stmt: stmt, err: err}
}

// exec runs a statement without parameters or rows.
func (c *conn) exec(text string) error { return c.query(text).exec() }

// query is one prepared statement. Parameters are bound in their order; the
// first error sticks and is returned by whoever ends the statement.
type query struct {
	stmt  *sqlite3.Stmt
	bound int
	err   error
}

func (q *query) int(v int64) *query {
	q.bound++
	if q.err == nil {
		q.err = q.stmt.BindInt64(q.bound, v)
	}
	return q
}

func (q *query) bool(v bool) *query {
	if v {
		return q.int(1)
	}
	return q.int(0)
}

func (q *query) text(v string) *query {
	q.bound++
	if q.err == nil {
		q.err = q.stmt.BindText(q.bound, v)
	}
	return q
}

func (q *query) blob(v []byte) *query {
	q.bound++
	if q.err == nil {
		q.err = q.stmt.BindBlob(q.bound, v)
	}
	return q
}

func (q *query) null() *query {
	q.bound++
	if q.err == nil {
		q.err = q.stmt.BindNull(q.bound)
	}
	return q
}

// The "or" binders store the zero value as NULL.

func (q *query) intOrNull(v int64) *query {
	if v == 0 {
		return q.null()
	}
	return q.int(v)
}

func (q *query) textOrNull(v string) *query {
	if v == "" {
		return q.null()
	}
	return q.text(v)
}

func (q *query) blobOrNull(v []byte) *query {
	if v == nil {
		return q.null()
	}
	return q.blob(v)
}

func (q *query) timeOrNull(t time.Time) *query {
	if t.IsZero() {
		return q.null()
	}
	return q.int(micros(t))
}

// step moves to the next row.
func (q *query) step() bool { return q.err == nil && q.stmt.Step() }

// done ends the statement and returns what went wrong on the way.
func (q *query) done() error {
	if q.stmt == nil {
		return q.err
	}
	err := q.stmt.Reset()
	if q.err == nil {
		q.err = err
	}
	return q.err
}

// close is done for statements of once.
func (q *query) close() error {
	err := q.done()
	q.stmt.Close()
	return err
}

// exec runs a statement that answers no rows.
func (q *query) exec() error {
	if q.err != nil {
		return q.err
	}
	return q.stmt.Exec()
}

// changes runs a statement and returns how many rows it changed.
func (q *query) changes() (int64, error) {
	if err := q.exec(); err != nil {
		return 0, err
	}
	return q.stmt.Conn().Changes(), nil
}

// one runs a statement that answers a single integer, 0 when there is no row.
func (q *query) one() (int64, error) {
	var v int64
	if q.step() {
		v = q.colInt(0)
	}
	return v, q.done()
}

// found runs a statement and reports whether it answers a row.
func (q *query) found() (bool, error) {
	ok := q.step()
	return ok, q.done()
}

func (q *query) colInt(i int) int64   { return q.stmt.ColumnInt64(i) }
func (q *query) colBool(i int) bool   { return q.stmt.ColumnInt64(i) != 0 }
func (q *query) colText(i int) string { return q.stmt.ColumnText(i) }
func (q *query) colNull(i int) bool   { return q.stmt.ColumnType(i) == sqlite3.NULL }
func (q *query) colTime(i int) time.Time {
	if q.colNull(i) {
		return time.Time{}
	}
	return timeOf(q.colInt(i))
}

// colBlob copies: what is returned belongs to the caller. NULL is nil.
func (q *query) colBlob(i int) []byte {
	raw := q.stmt.ColumnRawBlob(i)
	if raw == nil {
		if q.stmt.ColumnType(i) == sqlite3.BLOB {
			return []byte{}
		}
		return nil
	}
	return append(make([]byte, 0, len(raw)), raw...)
}

func (q *query) colID(i int) (id [16]byte) {
	copy(id[:], q.stmt.ColumnRawBlob(i))
	return id
}
