package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// A reader that does not end keeps the log from being emptied. The process says
// who it is, once a minute, and Health does; when it has ended, all is well.
func TestP10_WhoKeepsTheLogFromBeingEmptiedIsNamed(t *testing.T) {
	source, err := os.ReadFile("wal_test.go")
	if err != nil {
		t.Fatal(err)
	}
	line := func(mark string) string { // the line that ends with the mark
		before, _, _ := strings.Cut(string(source), mark+"\n")
		return fmt.Sprintf("wal_test.go:%d", strings.Count(before, "\n")+1)
	}
	for name, c := range map[string]struct {
		read func(t *testing.T, s *Store) (end func() error)
		want []string // in the log and in Health; none means that all is well
	}{
		"nobody": {read: func(t *testing.T, s *Store) func() error { return func() error { return nil } }},
		"a read-only transaction": {func(t *testing.T, s *Store) func() error {
			tx, err := s.DB().BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true}) // the transaction
			if err != nil {
				t.Fatal(err)
			}
			var n int
			if err := tx.QueryRow("SELECT count(*) FROM pawl_job").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return tx.Rollback
		}, []string{"read-only transaction", line("// the transaction")}},
		"open rows": {func(t *testing.T, s *Store) func() error {
			rows, err := s.DB().Query("SELECT value FROM json_each('[1,2,3]'), pawl_job") // the rows
			if err != nil {
				t.Fatal(err)
			}
			if !rows.Next() {
				t.Fatal(rows.Err())
			}
			return rows.Close
		}, []string{"not closed", line("// the rows")}},
		"a call of the engine": {func(t *testing.T, s *Store) func() error {
			begun, end, ended := make(chan bool), make(chan bool), make(chan error)
			go func() {
				ended <- s.read(context.Background(), func(c *lite.Snapshot) error { // the call
					defer func() { <-end }()
					defer close(begun)
					_, err := c.Query("SELECT count(*) FROM pawl_job").One()
					return err
				})
			}()
			<-begun
			return func() error { close(end); return <-ended }
		}, []string{"a call of the engine", line("// the call")}},
		"another process": {func(t *testing.T, s *Store) func() error {
			other, err := s.file.Connect(context.Background(), lite.SmallCache)
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Raw.Exec("BEGIN; SELECT count(*) FROM pawl_job"); err != nil {
				t.Fatal(err)
			}
			return other.Close
		}, []string{"another process"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said bytes.Buffer
				e, err := pawl.New(newFile(t), pawl.Config{Logger: slog.New(slog.NewTextHandler(&said, nil))})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				s := e.Store().(*Store)
				s.log.Limit, s.log.Worse = 10<<20, 10<<20 // SQLite empties it at 8 MiB
				s.mustEnqueue(t, draft())
				if _, err := s.DB().Exec("CREATE TABLE filler (x)"); err != nil {
					t.Fatal(err)
				}
				// write writes for so many quarters of a minute, 2 MiB at a time.
				write := func(n int) {
					for range n {
						time.Sleep(15 * time.Second) // virtual
						if _, err := s.DB().Exec("INSERT INTO filler VALUES (randomblob(2000000))"); err != nil {
							t.Fatal(err)
						}
						s.mustEnqueue(t, draft())
						synctest.Wait() // for what the writer says after its answer
					}
				}
				end := c.read(t, s)
				write(12)
				lines := strings.Count(said.String(), "cannot be emptied")
				err = e.Health(t.Context())
				if c.want == nil {
					if lines != 0 || err != nil {
						t.Errorf("nobody reads, and the log says %q, Health %v", said.String(), err)
					}
				} else {
					if lines < 1 || lines > 3 {
						t.Errorf("said %d times in three minutes, want once a minute", lines)
					}
					wantErr(t, "Health", err, store.ErrLogHeld)
					for _, w := range c.want {
						if !strings.Contains(said.String(), w) || err == nil || !strings.Contains(err.Error(), w) {
							t.Errorf("neither names %q:\n%s%v", w, said.String(), err)
						}
					}
				}
				if err := end(); err != nil {
					t.Fatal(err)
				}
				write(1) // which empties it, and may have met it full
				said.Reset()
				write(3)
				if err := e.Health(t.Context()); err != nil || said.Len() > 0 {
					t.Errorf("after it has ended: %v %s", err, said.String())
				}
			})
		})
	}
}

// The space of a log that was large comes back.
func TestP10_ALargeLogIsCutWhenItBeginsAnew(t *testing.T) {
	s := open(t, newFile(t))
	if _, err := s.DB().Exec("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(90000000)); DELETE FROM filler"); err != nil {
		t.Fatal(err)
	}
	for range 3 { // one to empty it, one to begin it anew
		if _, err := s.DB().Exec("INSERT INTO filler VALUES (1)"); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(s.log.Path)
	if err != nil || info.Size() > lite.LogLimit {
		t.Errorf("the log has %d bytes, want at most %d (%v)", info.Size(), lite.LogLimit, err)
	}
}

func TestHealth_OfAClosedStore(t *testing.T) {
	s := open(t, newFile(t))
	s.Close()
	if err := s.Health(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
