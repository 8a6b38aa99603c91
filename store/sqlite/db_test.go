package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

func TestP3_RowsAndJobsCommitTogether(t *testing.T) {
	for name, o := range map[string]store.Opener{"file": newFile(t), "memory": Memory()} {
		t.Run(name, func(t *testing.T) {
			s := open(t, o)
			if _, err := s.DB().Exec("CREATE TABLE orders (id INTEGER)"); err != nil {
				t.Fatal(err)
			}
			w := s.mustRegister(t)
			s.mustEnqueue(t, draft())
			held := s.mustClaim(t, claimOf(w, 1, 1)).Jobs[0]
			try := func(end func(*sql.Tx) error) {
				tx, err := s.DB().BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec("INSERT INTO orders VALUES ($1)", 7); err != nil {
					t.Fatal(err)
				}
				in := s.Within(tx)
				if _, err := in.Enqueue(t.Context(), drafts(2)); err != nil {
					t.Fatal(err)
				}
				if v, err := in.Finish(t.Context(), w, []job.End{{ID: held.ID, Run: held.Run, To: job.Done}}); err != nil || v[0] != job.Applied {
					t.Fatal(v, err)
				}
				if in.Commit(t.Context()) == nil || in.Rollback(t.Context()) == nil {
					t.Error("the caller's own transaction was ended through Within")
				}
				if err := end(tx); err != nil {
					t.Fatal(err)
				}
			}
			orders := func() (n int) {
				if err := s.DB().QueryRow("SELECT count(*) FROM orders").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			try((*sql.Tx).Rollback)
			if n, j := orders(), s.mustCount(t, job.Waiting); n != 0 || j != 0 {
				t.Errorf("after a rollback: %d orders, %d jobs, want none", n, j)
			}
			try((*sql.Tx).Commit)
			if n, j, d := orders(), s.mustCount(t, job.Waiting), s.mustCount(t, job.Done); n != 1 || j != 2 || d != 1 {
				t.Errorf("after a commit: %d orders, %d jobs, %d done, want 1, 2, 1", n, j, d)
			}
		})
	}
}

func TestP8_ATransactionHeldTooLongIsEndedAndOthersGoOn(t *testing.T) {
	for name, memory := range map[string]bool{"file": false, "memory": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Memory()
				if !memory {
					o = newFile(t)
				}
				s := open(t, o)
				tx, err := s.DB().BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Within(tx).Enqueue(t.Context(), drafts(1)); err != nil {
					t.Fatal(err)
				}
				answered := make(chan error)
				go func() {
					_, err := s.Enqueue(context.Background(), drafts(1))
					answered <- err
				}()
				begun, err := s.Now(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := <-answered; err != nil { // waits for the watchdog
					t.Errorf("another's enqueue: %v", err)
				}
				now, err := s.Now(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if waited := now.Sub(begun); waited != 5*time.Second {
					t.Errorf("the others waited %v, want the limit of 5s", waited)
				}
				_, err = tx.Exec("CREATE TABLE x (y)")
				wantErr(t, "a statement after the limit", err, store.ErrTxTooLong)
				_, err = s.Within(tx).Enqueue(t.Context(), drafts(1))
				wantErr(t, "an enqueue after the limit", err, store.ErrTxTooLong)
				wantErr(t, "its commit", tx.Commit(), store.ErrTxTooLong)
				if n := s.mustCount(t); n != 1 {
					t.Errorf("%d jobs, want only the other's", n)
				}
				// The connection goes back into the pool in order.
				again, err := s.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := again.Enqueue(t.Context(), drafts(1)); err != nil {
					t.Error(err)
				}
				if err := again.Commit(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// endless is a statement that only an interrupt ends.
const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

func TestP8_AStatementThatRunsTooLongIsStopped(t *testing.T) {
	s := open(t, newFile(t, Options{TxLimit: 20 * time.Millisecond}))
	tx, err := s.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	wantErr(t, "an endless statement", tx.QueryRow(endless).Scan(&n), store.ErrTxTooLong)
	wantErr(t, "its commit", tx.Commit(), store.ErrTxTooLong)
	s.mustEnqueue(t, draft())
}

// SQLite ends a transaction whose write was interrupted. What comes after must
// not commit piece by piece.
func TestP3_AnInterruptedTransactionDoesNotGoOn(t *testing.T) {
	s := open(t, newFile(t))
	if _, err := s.DB().Exec("CREATE TABLE orders (id INTEGER)"); err != nil {
		t.Fatal(err)
	}
	c, err := s.DB().Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = c.Raw(func(driver any) error { // cancelled by the statement itself: not before it runs
		return driver.(*userConn).conn.Raw.CreateFunction("runs", 1, 0, func(c sqlite3.Context, arg ...sqlite3.Value) {
			cancel()
			c.ResultValue(arg[0])
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := c.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("INSERT INTO orders VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO orders WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT runs(i) FROM n")
	wantErr(t, "the interrupted statement", err, context.Canceled)
	_, err = tx.Exec("INSERT INTO orders VALUES (2)")
	wantErr(t, "the next statement", err, sql.ErrTxDone)
	if tx.Commit() == nil {
		t.Error("the commit of what was rolled back succeeded")
	}
	var n int
	if err := s.DB().QueryRow("SELECT count(*) FROM orders").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d orders, want none (%v)", n, err)
	}
	s.mustEnqueue(t, draft()) // the lock is free
}

func TestWithin_RefusesForeignTransactions(t *testing.T) {
	s, other := open(t, newFile(t)), open(t, newFile(t))
	theirs, err := other.DB().Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Rollback()
	_, err = s.Within(theirs).Enqueue(t.Context(), drafts(1))
	wantErr(t, "another store's transaction", err, store.ErrForeignTx)

	db := sql.OpenDB(elsewhere{})
	defer db.Close()
	foreign, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Within(foreign).Enqueue(t.Context(), drafts(1))
	wantErr(t, "another library's transaction", err, store.ErrForeignTx)
	_, err = s.Within(foreign).Finish(t.Context(), 1, []job.End{{ID: job.NewID(), Run: 1, To: job.Done}})
	wantErr(t, "another library's transaction", err, store.ErrForeignTx)
	if err := foreign.Rollback(); err != nil {
		t.Fatal(err)
	}

	mine, err := s.DB().Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.Rollback(); err != nil {
		t.Fatal(err)
	}
	_, err = s.Within(mine).Enqueue(t.Context(), drafts(1))
	wantErr(t, "a transaction that is over", err, sql.ErrTxDone)

	reading, err := s.DB().BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Rollback()
	if _, err = s.Within(reading).Enqueue(t.Context(), drafts(1)); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a read-only transaction: %v", err)
	}
	if s.mustCount(t)+other.mustCount(t) != 0 {
		t.Error("a refused transaction left jobs behind")
	}
}

// elsewhere is a database/sql driver that is not ours and takes any statement.
type elsewhere struct{}

func (elsewhere) Connect(context.Context) (driver.Conn, error) { return elsewhere{}, nil }
func (elsewhere) Driver() driver.Driver                        { return nil }
func (elsewhere) Prepare(string) (driver.Stmt, error)          { return elsewhere{}, nil }
func (elsewhere) Close() error                                 { return nil }
func (elsewhere) Begin() (driver.Tx, error)                    { return elsewhere{}, nil }
func (elsewhere) Commit() error                                { return nil }
func (elsewhere) Rollback() error                              { return nil }
func (elsewhere) NumInput() int                                { return 0 }
func (elsewhere) Exec([]driver.Value) (driver.Result, error)   { return driver.RowsAffected(1), nil }
func (elsewhere) Query([]driver.Value) (driver.Rows, error)    { return elsewhere{}, nil }
func (elsewhere) Columns() []string                            { return nil }
func (elsewhere) Next([]driver.Value) error                    { return io.EOF }

// A failed enqueue undoes itself and leaves the user's rows alone.
func TestP3_AFailedEnqueueLeavesTheTransactionAsItWas(t *testing.T) {
	s := open(t, newFile(t))
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "CREATE TABLE orders (id INTEGER)"); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	in := tx.(ownTx).within
	err = in.run(t.Context(), func(tr *jobs.Transition) error {
		_, err := whole(tr, func() ([]job.Receipt, error) {
			if _, err := tr.Enqueue(drafts(3)); err != nil {
				return nil, err
			}
			return nil, broken
		})
		return err
	})
	wantErr(t, "the failed enqueue", err, broken)
	if _, err := tx.Enqueue(t.Context(), drafts(1)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.mustCount(t); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
}

func TestDB_BeginBySQLIsRefused(t *testing.T) {
	s := open(t, newFile(t))
	for _, text := range []string{"BEGIN", "BEGIN IMMEDIATE", "SAVEPOINT x"} {
		if _, err := s.DB().Exec(text); err == nil || !strings.Contains(err.Error(), "BeginTx") {
			t.Errorf("%s: %v, want to be told of BeginTx", text, err)
		}
	}
	s.mustEnqueue(t, draft())
}

// A reader that is slow to read its rows holds nobody up.
func TestDB_OpenRowsDoNotStopTheWriter(t *testing.T) {
	s := open(t, newFile(t))
	s.mustEnqueue(t, drafts(10)...)
	rows, err := s.DB().Query("SELECT id FROM pawl_job")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	s.mustEnqueue(t, draft())
	n := 1
	for rows.Next() {
		n++
	}
	if n != 10 || rows.Err() != nil {
		t.Errorf("read %d rows, want the 10 of the moment it began (%v)", n, rows.Err())
	}
}

func TestDB_ReadOnlyTransactionsNeedNoLock(t *testing.T) {
	s := open(t, newFile(t))
	writing, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer writing.Rollback(t.Context())
	reading, err := s.DB().BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reading.QueryRow("SELECT count(*) FROM pawl_job").Scan(&n); err != nil {
		t.Error(err)
	}
	if _, err := reading.Exec("DELETE FROM pawl_job"); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("a write in a read-only transaction: %v", err)
	}
	if err := reading.Rollback(); err != nil {
		t.Error(err)
	}
}

func TestDB_ValuesGoInAndOutAsTheyAre(t *testing.T) {
	s := open(t, newFile(t))
	if _, err := s.DB().Exec("CREATE TABLE v (i INTEGER, f REAL, s TEXT, b BLOB, t TIMESTAMP, o BOOLEAN, n)"); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 15, 3, 4, 5, 678_000_000, time.UTC)
	if _, err := s.DB().Exec("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?, ?)", int32(-7), 1.5, "zero \x00 byte", []byte{0, 255}, at, true, nil); err != nil {
		t.Fatal(err)
	}
	var (
		i    int64
		f    float64
		text string
		blob []byte
		when time.Time
		ok   bool
		none any
	)
	if err := s.DB().QueryRow("SELECT * FROM v WHERE i = $2 AND f = $1", 1.5, -7).Scan(&i, &f, &text, &blob, &when, &ok, &none); err != nil {
		t.Fatal(err)
	}
	if i != -7 || f != 1.5 || text != "zero \x00 byte" || string(blob) != "\x00\xff" || !when.Equal(at) || !ok || none != nil {
		t.Errorf("got %v %v %q %v %v %v %v", i, f, text, blob, when, ok, none)
	}
	if err := s.DB().QueryRow("SELECT :a || @b", sql.Named("a", "x"), sql.Named("b", "y")).Scan(&text); err != nil || text != "xy" {
		t.Errorf("named: %q %v", text, err)
	}
	for what, try := range map[string]func() error{
		"too few":      func() error { return s.DB().QueryRow("SELECT ?, ?", 1).Scan(&i, &i) },
		"too many":     func() error { return s.DB().QueryRow("SELECT ?", 1, 2).Scan(&i) },
		"unknown name": func() error { return s.DB().QueryRow("SELECT :a", sql.Named("b", 1)).Scan(&i) },
		"two at once":  func() error { return s.DB().QueryRow("SELECT 1; SELECT 2").Scan(&i) },
		"none":         func() error { return s.DB().QueryRow("-- nothing").Scan(&i) },
		"a channel":    func() error { return s.DB().QueryRow("SELECT ?", make(chan int)).Scan(&i) },
	} {
		if try() == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestDB_ForeignKeysAreAnOption(t *testing.T) {
	for _, on := range []bool{false, true} {
		s := open(t, newFile(t, Options{IgnoreForeignKeys: !on}))
		if _, err := s.DB().Exec("CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p (id))"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.DB().Exec("INSERT INTO c VALUES (1)"); (err != nil) != on {
			t.Errorf("with foreign keys %v: %v", on, err)
		}
	}
}

func TestDB_EndsWithTheStore(t *testing.T) {
	s := open(t, newFile(t))
	s.Close()
	if err := s.DB().Ping(); err == nil {
		t.Error("the database is open after its store was closed")
	}
	_, err := s.Begin(t.Context())
	wantErr(t, "begin", err, store.ErrClosed)
}
