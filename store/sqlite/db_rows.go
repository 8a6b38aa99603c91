package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// userRows are the rows of a query.
type userRows struct {
	ctx   context.Context
	s     *userStmt
	names []string
	kinds []string

	ready  [][]driver.Value // of a statement that writes: those not handed out yet
	failed bool             // Next has returned the statement's error
	reads  *lite.Reading    // outside of a transaction
}

func (r *userRows) Columns() []string { return r.names }

// ColumnTypeDatabaseTypeName is the declared type.
func (r *userRows) ColumnTypeDatabaseTypeName(i int) string { return r.kinds[i] }

// mostReturned bounds the bytes of rows that a statement which writes answers (P10):
// they are all kept until its caller has read them.
const mostReturned = 64 << 20

var errMuchReturned = fmt.Errorf("pawl: a statement that writes answers rows of more than %d bytes, and was undone "+
	"with the transaction that it is in: write in portions, or without RETURNING", mostReturned)

// readAll runs a statement that writes to its end, and keeps its rows. Its
// caller may stop it until the first row: by then all is written, and stopping
// would leave a commit that nobody is told of.
func (r *userRows) readAll() error {
	bytes := 0
	for r.s.stmt.Step() {
		r.s.c.conn.Raw.SetInterrupt(context.Background())
		bytes += rowBytes
		for i := range r.names {
			if bytes += valueBytes; r.s.stmt.ColumnType(i) == sqlite3.TEXT || r.s.stmt.ColumnType(i) == sqlite3.BLOB {
				bytes += len(r.s.stmt.ColumnRawBlob(i))
			}
		}
		if bytes > mostReturned {
			return r.undo()
		}
		row := make([]driver.Value, len(r.names))
		for i := range row {
			row[i] = r.value(i)
		}
		r.ready = append(r.ready, row)
	}
	if err := r.s.stmt.Err(); err != nil {
		_ = r.s.stmt.Reset() // repeats the error
		return err
	}
	return r.s.stmt.Reset()
}

// What a row and a value of it take beside their text.
const rowBytes, valueBytes = 32, 32

// undo takes back a statement that has written all and answers too much. Outside
// of a transaction its end is a commit, which is refused. Inside of one, all of
// that is undone, as when a statement is interrupted: a part must not be kept.
func (r *userRows) undo() error {
	r.ready = nil
	raw := r.s.c.conn.Raw
	if r.s.c.tx != nil {
		return errors.Join(errMuchReturned, r.s.stmt.Reset(), raw.Exec("ROLLBACK"))
	}
	raw.CommitHook(func() bool { return false })
	defer raw.CommitHook(nil)
	if err := r.s.stmt.Reset(); !errors.Is(err, sqlite3.CONSTRAINT_COMMITHOOK) {
		return errors.Join(errMuchReturned, err) // it failed in another way: it is undone as well
	}
	return errMuchReturned
}

// Close ends the statement. An error that no row has told is told here.
func (r *userRows) Close() error {
	r.s.c.mu.Lock()
	defer r.s.c.mu.Unlock()
	r.ready = nil
	r.s.c.s.log.Readings.End(r.reads)
	if err := r.s.stmt.Reset(); err != nil && !r.failed {
		return lite.WithMeaning(err)
	}
	return nil
}

// Next reads a row. One of a statement that reads is stepped to as it is asked for.
func (r *userRows) Next(dest []driver.Value) error {
	if r.s.writes {
		if len(r.ready) == 0 {
			return io.EOF
		}
		copy(dest, r.ready[0])
		r.ready = r.ready[1:]
		return nil
	}
	return r.s.c.use(r.ctx, func() error {
		if !r.s.stmt.Step() {
			if err := r.s.stmt.Err(); err != nil {
				r.failed = true
				return err
			}
			return io.EOF
		}
		for i := range dest {
			dest[i] = r.value(i)
		}
		return nil
	})
}

// value reads a column as what it is; the declared type only tells times and
// booleans, for which SQLite has no storage class.
func (r *userRows) value(i int) driver.Value {
	s := r.s.stmt
	var v driver.Value
	switch s.ColumnType(i) {
	case sqlite3.INTEGER:
		v = s.ColumnInt64(i)
		if r.kinds[i] == "BOOLEAN" || r.kinds[i] == "BOOL" {
			return v != int64(0)
		}
	case sqlite3.FLOAT:
		v = s.ColumnFloat(i)
	case sqlite3.TEXT:
		v = s.ColumnText(i)
	case sqlite3.BLOB:
		return append([]byte{}, s.ColumnRawBlob(i)...)
	default:
		return nil
	}
	switch r.kinds[i] {
	case "DATE", "TIME", "DATETIME", "TIMESTAMP":
		if t, err := sqlite3.TimeFormatAuto.Decode(v); err == nil {
			return t
		}
	}
	return v
}
