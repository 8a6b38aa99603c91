package lite

import (
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Query is one prepared statement. Parameters are bound in their order; the
// first error sticks and is returned by whoever ends the statement.
type Query struct {
	stmt  *sqlite3.Stmt
	bound int
	err   error
}

// Int binds the next parameter, as Bool, Text, Blob and Null do.
func (q *Query) Int(v int64) *Query {
	q.bound++
	if q.err == nil {
		q.err = q.stmt.BindInt64(q.bound, v)
	}
	return q
}

// Float binds a number that need not be whole.
func (q *Query) Float(v float64) *Query {
	q.bound++
	if q.err == nil {
		q.err = q.stmt.BindFloat(q.bound, v)
	}
	return q
}

func (q *Query) Bool(v bool) *Query {
	if v {
		return q.Int(1)
	}
	return q.Int(0)
}

func (q *Query) Text(v string) *Query {
	q.bound++
	if q.err == nil {
		q.err = q.stmt.BindText(q.bound, v)
	}
	return q
}

func (q *Query) Blob(v []byte) *Query {
	q.bound++
	if q.err == nil {
		q.err = q.stmt.BindBlob(q.bound, v)
	}
	return q
}

func (q *Query) Null() *Query {
	q.bound++
	if q.err == nil {
		q.err = q.stmt.BindNull(q.bound)
	}
	return q
}

// The "or" binders store the zero value as NULL.

func (q *Query) IntOrNull(v int64) *Query {
	if v == 0 {
		return q.Null()
	}
	return q.Int(v)
}

func (q *Query) TextOrNull(v string) *Query {
	if v == "" {
		return q.Null()
	}
	return q.Text(v)
}

func (q *Query) BlobOrNull(v []byte) *Query {
	if v == nil {
		return q.Null()
	}
	return q.Blob(v)
}

func (q *Query) TimeOrNull(t time.Time) *Query {
	if t.IsZero() {
		return q.Null()
	}
	return q.Int(Micros(t))
}

// asMany binds as many of the values as the statement has parameters for.
func (q *Query) asMany(values ...int64) *Query {
	for _, v := range values {
		if q.bound < q.parameters() {
			q.Int(v)
		}
	}
	return q
}

func (q *Query) parameters() int { return q.stmt.BindCount() }
func (q *Query) columns() int    { return q.stmt.ColumnCount() }

// Err is the error that a loop over the rows has met; Done has it too.
func (q *Query) Err() error {
	if q.err != nil {
		return q.err
	}
	return q.stmt.Err()
}

// Step moves to the next row.
func (q *Query) Step() bool { return q.err == nil && q.stmt.Step() }

// Done ends the statement and returns what went wrong on the way.
func (q *Query) Done() error {
	if q.stmt == nil {
		return q.err
	}
	err := q.stmt.Reset()
	if q.err == nil {
		q.err = err
	}
	return q.err
}

// Close is Done for statements of Once.
func (q *Query) Close() error {
	err := q.Done()
	q.stmt.Close()
	return err
}

// Exec runs a statement that answers no rows.
func (q *Query) Exec() error {
	if q.err != nil {
		return q.err
	}
	return q.stmt.Exec()
}

// Changes runs a statement and returns how many rows it changed.
func (q *Query) Changes() (int64, error) {
	if err := q.Exec(); err != nil {
		return 0, err
	}
	return q.stmt.Conn().Changes(), nil
}

// One runs a statement that answers a single integer, 0 when there is no row.
func (q *Query) One() (int64, error) {
	var v int64
	if q.Step() {
		v = q.ColInt(0)
	}
	return v, q.Done()
}

// Found runs a statement and reports whether it answers a row.
func (q *Query) Found() (bool, error) {
	ok := q.Step()
	return ok, q.Done()
}

// ColInt and its like read a column of the row that Step moved to.

func (q *Query) ColInt(i int) int64     { return q.stmt.ColumnInt64(i) }
func (q *Query) ColFloat(i int) float64 { return q.stmt.ColumnFloat(i) }
func (q *Query) ColBool(i int) bool     { return q.stmt.ColumnInt64(i) != 0 }
func (q *Query) ColText(i int) string   { return q.stmt.ColumnText(i) }

// ColTextLike is ColText where the last row mostly had the same, which is given again.
func (q *Query) ColTextLike(i int, last string) string {
	if raw := q.stmt.ColumnRawText(i); string(raw) != last {
		return string(raw)
	}
	return last
}

func (q *Query) ColNull(i int) bool { return q.stmt.ColumnType(i) == sqlite3.NULL }
func (q *Query) ColTime(i int) time.Time {
	if q.ColNull(i) {
		return time.Time{}
	}
	return TimeOf(q.ColInt(i))
}

// ColBlob copies: what is returned belongs to the caller. NULL is nil. The type is
// asked first, because most blobs of most rows are NULL.
func (q *Query) ColBlob(i int) []byte {
	kind := q.stmt.ColumnType(i)
	if kind == sqlite3.NULL {
		return nil
	}
	raw := q.stmt.ColumnRawBlob(i)
	if raw == nil && kind != sqlite3.BLOB {
		return nil
	}
	return append(make([]byte, 0, len(raw)), raw...)
}

// ColID reads an id.
func (q *Query) ColID(i int) (id [16]byte) {
	copy(id[:], q.stmt.ColumnRawBlob(i))
	return id
}
