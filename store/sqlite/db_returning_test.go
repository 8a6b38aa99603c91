package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// returning is a statement that writes and answers rows: outside of a
// transaction it commits by itself, after its rows.
const returning = "INSERT INTO c (p) VALUES (?) RETURNING id"

// The three ways in which users read the rows of such a statement.
var waysToRead = map[string]func(db queryer, p int) error{
	"QueryRow": func(db queryer, p int) error {
		var id int64
		return db.QueryRow(returning, p).Scan(&id)
	},
	"one Next": func(db queryer, p int) error {
		rows, err := db.Query(returning, p)
		if err != nil {
			return err
		}
		rows.Next()
		return errors.Join(rows.Err(), rows.Close())
	},
	"all rows": func(db queryer, p int) error {
		rows, err := db.Query(returning, p)
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		return errors.Join(rows.Err(), rows.Close())
	},
}

// queryer is *sql.DB and *sql.Tx.
type queryer interface {
	QueryRow(text string, args ...any) *sql.Row
	Query(text string, args ...any) (*sql.Rows, error)
}

func children(t *testing.T, s *Store, foreignKey string) func() int {
	t.Helper()
	if _, err := s.DB().Exec("CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p (id) " + foreignKey + "); INSERT INTO p VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	return func() (n int) {
		t.Helper()
		if err := s.DB().QueryRow("SELECT count(*) FROM c").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// A nil error of a statement that answers rows means that it is on disk, as it
// does for one that answers none (P1).
func TestP1_AStatementWithRowsSaysWhenItsCommitFailed(t *testing.T) {
	for name, read := range waysToRead {
		for _, foreignKey := range []string{"", "DEFERRABLE INITIALLY DEFERRED"} {
			t.Run(name+"/foreign key/"+foreignKey, func(t *testing.T) {
				s := open(t, newFile(t))
				count := children(t, s, foreignKey)
				if err := read(s.DB(), 99); !errors.Is(err, sqlite3.CONSTRAINT_FOREIGNKEY) {
					t.Errorf("a row without its parent: %v, want the foreign key's error", err)
				}
				if err := read(s.DB(), 1); err != nil {
					t.Error(err)
				}
				if n := count(); n != 1 {
					t.Errorf("%d rows, want the one that was accepted", n)
				}
			})
		}
		t.Run(name+"/full disk", func(t *testing.T) {
			s, d := faulty(t)
			count := children(t, s, "")
			d.full.Store(true)
			wantErr(t, "on a full disk", read(s.DB(), 1), store.ErrFull)
			d.full.Store(false)
			if err := read(s.DB(), 1); err != nil {
				t.Errorf("when there is room again: %v", err)
			}
			if n := count(); n != 1 {
				t.Errorf("%d rows, want the one that was accepted", n)
			}
		})
		t.Run(name+"/no flush", func(t *testing.T) {
			s, d := faulty(t)
			children(t, s, "")
			d.noFlush.Store(true)
			wantErr(t, "without a flush", read(s.DB(), 1), job.ErrOutcomeUnknown, store.ErrFull)
			d.noFlush.Store(false)
		})
	}
}

// Inside a transaction it is the statement that fails, not the commit, unless
// the rule says otherwise.
func TestP1_AStatementWithRowsFailsInsideATransactionToo(t *testing.T) {
	for name, read := range waysToRead {
		t.Run(name, func(t *testing.T) {
			s := open(t, newFile(t))
			count := children(t, s, "")
			tx, err := s.DB().Begin()
			if err != nil {
				t.Fatal(err)
			}
			if err := read(tx, 99); !errors.Is(err, sqlite3.CONSTRAINT_FOREIGNKEY) {
				t.Errorf("a row without its parent: %v, want the foreign key's error", err)
			}
			if err := read(tx, 1); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			if n := count(); n != 1 {
				t.Errorf("%d rows, want the one that was accepted", n)
			}
		})
	}
}

// A statement that writes has ended when its rows are handed out: whoever is
// slow to read them holds nobody up, and forgets nothing.
func TestP8_RowsOfAWriteHoldNoLock(t *testing.T) {
	s := open(t, newFile(t))
	children(t, s, "")
	rows, err := s.DB().Query("INSERT INTO c (p) VALUES (1), (1), (1) RETURNING id, p")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	s.mustEnqueue(t, draft())
	n := 1
	for ; rows.Next(); n++ {
		var id, p int
		if err := rows.Scan(&id, &p); err != nil || p != 1 || id != n+1 {
			t.Errorf("row %d: id %d, p %d, %v", n, id, p, err)
		}
	}
	if n != 3 || rows.Err() != nil {
		t.Errorf("%d rows, %v", n, rows.Err())
	}
}

// A write that answers rows waits for its turn like any other, and gives up
// with its caller.
func TestDB_AWriteWithRowsTakesItsTurn(t *testing.T) {
	s := open(t, newFile(t))
	children(t, s, "")
	holder, err := s.DB().Begin()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		var id int64
		answer <- s.DB().QueryRowContext(ctx, returning, 1).Scan(&id)
	}()
	cancel()
	wantErr(t, "a write whose caller gave up", <-answer, context.Canceled)
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	s.mustEnqueue(t, draft()) // the lock is free
}

// Rows that a statement which writes answers are kept until they are read. More
// than the bound is an error, and then nothing of it is written (P10).
func TestP10_AStatementThatAnswersTooMuchIsUndone(t *testing.T) {
	const many = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO c (p) SELECT 1 FROM n RETURNING id, zeroblob(?)`
	const row = 1 << 20
	s := open(t, newFile(t))
	count := children(t, s, "")
	read := func(db queryer, rows, bytes int) (n int, err error) {
		r, err := db.Query(many, rows, bytes)
		if err != nil {
			return 0, err
		}
		for r.Next() {
			n++
		}
		return n, errors.Join(r.Err(), r.Close())
	}
	for name, c := range map[string]struct{ rows, bytes int }{"large rows": {mostReturned / row, row}, "many rows": {mostReturned >> 12, 1 << 12}} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(s.DB(), c.rows, c.bytes); !errors.Is(err, errMuchReturned) || errors.Is(err, job.ErrOutcomeUnknown) {
				t.Errorf("%v, want the bound and that it was undone", err)
			}
			if n := count(); n != 0 {
				t.Errorf("%d rows were written", n)
			}
			tx, err := s.DB().Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("INSERT INTO c (p) VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			if _, err := read(tx, c.rows, c.bytes); !errors.Is(err, errMuchReturned) {
				t.Errorf("%v, want the bound", err)
			}
			if _, err := tx.Exec("INSERT INTO c (p) VALUES (1)"); !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("the transaction goes on: %v", err)
			}
			if err := tx.Commit(); err == nil {
				t.Error("what was undone was called committed")
			}
			if n := count(); n != 0 {
				t.Errorf("%d rows were written", n)
			}
		})
	}
	// What comes after, on the same connections, is as ever.
	for range 5 {
		if n, err := read(s.DB(), 3, row); err != nil || n != 3 {
			t.Errorf("%d rows, %v", n, err)
		}
	}
	if n := count(); n != 15 {
		t.Errorf("%d rows, want 15", n)
	}
}
