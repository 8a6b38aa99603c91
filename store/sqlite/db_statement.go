package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

func (c *userConn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c *userConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	var st *userStmt
	err := c.use(ctx, func() error {
		stmt, tail, err := c.conn.Raw.Prepare(text)
		if err != nil {
			return err
		}
		if stmt == nil {
			return errors.New("pawl: no SQL statement")
		}
		if strings.TrimSpace(tail) != "" {
			return errors.Join(errors.New("pawl: more than one SQL statement"), stmt.Close())
		}
		st = &userStmt{c: c, stmt: stmt, writes: !stmt.ReadOnly()}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return st, nil
}

// workKey carries a transition of Pawl into a user's transaction: the only way
// from *sql.Tx to its connection is a call through it.
type workKey struct{}

// work runs inside the transaction of the connection it is given to.
type work struct {
	run func(*userConn) error
	ran bool
}

// workText is what another driver would run, harmlessly, in its place.
const workText = "SELECT 1"

// ExecContext runs several statements without arguments at once, and Pawl's own
// transitions. With arguments, database/sql prepares the statement instead.
func (c *userConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if w, ok := ctx.Value(workKey{}).(*work); ok && text == workText {
		w.ran = true
		return driver.RowsAffected(0), c.use(ctx, func() error { return w.run(c) })
	}
	if len(args) > 0 {
		return nil, driver.ErrSkip
	}
	release, err := c.lockOutside(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var r result
	err = c.use(ctx, func() error {
		if err := c.conn.Raw.Exec(text); err != nil {
			return err
		}
		r = c.result()
		return nil
	})
	return r, err
}

// lockOutside takes the write lock for a statement outside a transaction, so
// that it waits for its turn in line instead of for a lucky moment.
func (c *userConn) lockOutside(ctx context.Context) (release func(), err error) {
	if c.tx != nil {
		return func() {}, nil
	}
	if err := c.s.takeTurn(ctx); err != nil {
		return nil, err
	}
	return func() {
		c.s.lock.Release()
		c.s.log.Watch(c.conn)
	}, nil
}

func (c *userConn) result() result {
	return result{id: c.conn.Raw.LastInsertRowID(), rows: c.conn.Raw.Changes()}
}

type result struct{ id, rows int64 }

func (r result) LastInsertId() (int64, error) { return r.id, nil }
func (r result) RowsAffected() (int64, error) { return r.rows, nil }

// userStmt is one prepared statement of the user's.
type userStmt struct {
	c      *userConn
	stmt   *sqlite3.Stmt
	writes bool
}

var (
	_ driver.StmtExecContext   = (*userStmt)(nil)
	_ driver.StmtQueryContext  = (*userStmt)(nil)
	_ driver.NamedValueChecker = (*userStmt)(nil)
)

func (s *userStmt) Close() error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.stmt.Close()
}

// NumInput leaves the count to bind, which knows of named parameters.
func (s *userStmt) NumInput() int { return -1 }

func (s *userStmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), ordinal(args))
}

func (s *userStmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), ordinal(args))
}

func ordinal(args []driver.Value) []driver.NamedValue {
	named := make([]driver.NamedValue, len(args))
	for i, v := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}

func (s *userStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.writes {
		release, err := s.c.lockOutside(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	var r result
	err := s.c.use(ctx, func() error {
		if err := s.bind(args); err != nil {
			return err
		}
		if err := s.stmt.Exec(); err != nil {
			return err
		}
		r = s.c.result()
		return nil
	})
	return r, err
}

// QueryContext runs a statement that answers rows. One that only reads is
// stepped as its rows are asked for. One that writes has run to its end, and
// outside of a transaction it is committed, before the first row is handed out:
// most callers read one row and no further, and what its end comes to, a broken
// foreign key or a full disk, must not be missed (P1). SQLite itself has made
// all of its changes, and all of its rows, before the first.
func (s *userStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	r := &userRows{ctx: ctx, s: s}
	if s.c.tx == nil && !s.writes {
		r.reads = lite.NewReading("rows of a query of DB that are not closed", &s.c.s.time)
	}
	if s.writes {
		release, err := s.c.lockOutside(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	err := s.c.use(ctx, func() error {
		for i := range s.stmt.ColumnCount() {
			r.names = append(r.names, s.stmt.ColumnName(i))
			r.kinds = append(r.kinds, strings.ToUpper(s.stmt.ColumnDeclType(i)))
		}
		if err := s.bind(args); err != nil || !s.writes {
			return err
		}
		return r.readAll()
	})
	if err != nil {
		return nil, err
	}
	if r.reads != nil {
		s.c.s.log.Readings.Begin(r.reads)
	}
	return r, nil
}

func (s *userStmt) CheckNamedValue(v *driver.NamedValue) error {
	switch v.Value.(type) {
	case nil, bool, int, int64, float64, string, []byte, time.Time:
		return nil
	}
	return driver.ErrSkip
}

// bind sets every parameter. $1 and ?1 are the first by position; a name is
// found with any of SQLite's prefixes.
func (s *userStmt) bind(args []driver.NamedValue) error {
	if err := s.stmt.ClearBindings(); err != nil {
		return err
	}
	want, set := s.stmt.BindCount(), make(map[int]bool, len(args))
	for _, a := range args {
		places, err := s.places(a)
		if err != nil {
			return err
		}
		for _, i := range places {
			set[i] = true
			if err := s.bindValue(i, a.Value); err != nil {
				return err
			}
		}
	}
	if len(set) != want {
		return fmt.Errorf("pawl: statement has %d parameters, %d were given", want, len(set))
	}
	return nil
}

func (s *userStmt) places(a driver.NamedValue) ([]int, error) {
	if a.Name == "" {
		// "$1" is a name to SQLite: it counts by first appearance, the writer counts by number.
		if i := s.stmt.BindIndex(fmt.Sprintf("$%d", a.Ordinal)); i > 0 {
			return []int{i}, nil
		}
		if a.Ordinal > s.stmt.BindCount() {
			return nil, fmt.Errorf("pawl: statement has %d parameters, argument %d was given", s.stmt.BindCount(), a.Ordinal)
		}
		return []int{a.Ordinal}, nil
	}
	var places []int
	for _, prefix := range []string{":", "@", "$"} {
		if i := s.stmt.BindIndex(prefix + a.Name); i > 0 {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		return nil, fmt.Errorf("pawl: statement has no parameter named %q", a.Name)
	}
	return places, nil
}

func (s *userStmt) bindValue(i int, value any) error {
	switch v := value.(type) {
	case nil:
		return s.stmt.BindNull(i)
	case bool:
		return s.stmt.BindBool(i, v)
	case int:
		return s.stmt.BindInt(i, v)
	case int64:
		return s.stmt.BindInt64(i, v)
	case float64:
		return s.stmt.BindFloat(i, v)
	case string:
		return s.stmt.BindText(i, v)
	case []byte:
		if v == nil {
			return s.stmt.BindNull(i)
		}
		return s.stmt.BindBlob(i, v)
	case time.Time:
		return s.stmt.BindTime(i, v, sqlite3.TimeFormatDefault)
	}
	return fmt.Errorf("pawl: parameter %d: type %T is not supported", i, value)
}
