package sqlite

import (
	"time"

	"github.com/ncruces/go-sqlite3"
)

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

// failed is the error that a loop over the rows has met; done has it too.
func (q *query) failed() error {
	if q.err != nil {
		return q.err
	}
	return q.stmt.Err()
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
