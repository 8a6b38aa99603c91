package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

type work struct{}

func (work) Kind() string { return "work" }

// The connection of a caller's own transaction is one of the store's, so its
// commit starts the jobs: no time passes, and no poll.
func TestJ2_ACommitOfTheCallersOwnStartsItsJobsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		began := make(chan time.Time, 10)
		pawl.Handle(e, func(context.Context, *pawl.Job[work]) error {
			began <- time.Now()
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		time.Sleep(time.Hour) // virtual: whatever starting up asks for is done
		synctest.Wait()

		for _, commit := range []bool{false, true} {
			looks := e.Stats().Looks
			stx, err := e.DB().BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			tx := sqlite.Within(e, stx)
			if _, err := tx.EnqueueMany(ctx, pawl.NewItem(work{}), pawl.NewItem(work{})); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := e.Stats().Looks; n != looks || len(began) != 0 {
				t.Errorf("%d looks and %d runs before the transaction ended", n-looks, len(began))
			}
			end, want := stx.Rollback, 0
			if commit {
				end, want = stx.Commit, 2
			}
			at := time.Now()
			if err := end(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(began) != want {
				t.Errorf("commit %v: %d jobs began at once, want %d", commit, len(began), want)
			}
			for range len(began) {
				if b := <-began; !b.Equal(at) {
					t.Errorf("a job began %v after the commit", b.Sub(at))
				}
			}
		}
		cancel()
		if err := errors.Join(<-ended, e.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A run that ended in the caller's own transaction is counted and told like any
// other, as what the transaction said; one that was rolled back, wholly or to a
// savepoint, has failed, also when its handler says nothing.
func TestP3_ARunFinishedWithinIsCountedAndTold(t *testing.T) {
	commit := func(tx *sql.Tx, _ func()) error { return tx.Commit() }
	rollback := func(tx *sql.Tx, _ func()) error { return tx.Rollback() }
	failed := errors.New("it failed")
	for name, c := range map[string]struct {
		end  func(tx *sql.Tx, cancel func()) error
		fail error // what the handler returns
		want job.State
		inTx bool
	}{
		"committed":            {commit, nil, job.Done, true},
		"committed, then fail": {commit, failed, job.Done, true},
		"rolled back":          {rollback, failed, job.Dead, false},
		"rolled back, done":    {rollback, nil, job.Dead, false}, // its effects are gone
		"by its context": {func(tx *sql.Tx, cancel func()) error { // database/sql rolls it back, in a goroutine of its own
			cancel()
			return nil
		}, failed, job.Dead, false},
		"to a savepoint": {func(tx *sql.Tx, _ func()) error {
			_, err := tx.Exec("rollback to before")
			return errors.Join(err, tx.Commit())
		}, failed, job.Dead, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := make(chan pawl.Finished, 10)
				e, err := pawl.New(sqlite.Memory(), pawl.Config{
					Queues: pawl.Queues{"default": {Workers: 2}}, Hooks: pawl.Hooks{Finish: func(f pawl.Finished) { told <- f }},
				})
				if err != nil {
					t.Fatal(err)
				}
				pawl.Handle(e, func(ctx context.Context, j *pawl.Job[work]) error {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					stx, err := e.DB().BeginTx(ctx, nil)
					if err != nil {
						return err
					}
					defer stx.Rollback()
					if _, err := stx.ExecContext(ctx, "savepoint before"); err != nil {
						return err
					}
					if err := sqlite.Within(e, stx).FinishResult(j, "result"); err != nil {
						return err
					}
					return errors.Join(c.end(stx, cancel), c.fail)
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- e.Run(ctx) }()
				r, err := e.Enqueue(ctx, work{}, pawl.Attempts(1))
				if err != nil {
					t.Fatal(err)
				}
				select {
				case f := <-told:
					if f.ID != r.ID || f.State != c.want || f.InTx != c.inTx {
						t.Errorf("told %+v", f)
					}
				case <-time.After(time.Hour): // virtual
					t.Error("the hook was not told")
				}
				if j, err := e.Get(ctx, r.ID); err != nil || j.State != c.want {
					t.Errorf("it is %v, want %v (%v)", j.State, c.want, err)
				}
				s := e.Stats()
				if in := s.InTx == 1; in != c.inTx || s.Unclear != 0 || s.Refused != 0 || len(told) != 0 {
					t.Errorf("in transactions %d, unclear %d, refused %d, told once more %d", s.InTx, s.Unclear, s.Refused, len(told))
				}
				cancel()
				if err := errors.Join(<-ended, e.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An engine call inside of a transaction's callback, with another context than
// the callback's, waits until the transaction is ended by its limit. The log
// tells after a second, once, where both are.
func TestJ2_ACallThatWaitsForItsOwnTransactionIsNamed(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, e *pawl.Engine) error{
		"enqueue": func(ctx context.Context, e *pawl.Engine) error {
			_, err := e.Enqueue(ctx, work{}) // waits
			return err
		},
		"transaction": func(ctx context.Context, e *pawl.Engine) error {
			return e.Tx(ctx, func(context.Context, *pawl.Tx) error { return nil }) // waits
		},
		"statement": func(ctx context.Context, e *pawl.Engine) error {
			_, err := e.DB().ExecContext(ctx, "create table t (n)") // waits
			return err
		},
		"query": func(ctx context.Context, e *pawl.Engine) error {
			return e.DB().QueryRowContext(ctx, "update pawl_job set id = id returning id").Scan(new([]byte)) // waits
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said := &record{}
				e, err := pawl.New(sqlite.Memory(), pawl.Config{Logger: slog.New(said)})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				began := time.Now()
				outer := t.Context()
				err = e.Tx(outer, func(context.Context, *pawl.Tx) error { // begins
					if err := call(outer, e); err != nil && !errors.Is(err, sql.ErrNoRows) {
						t.Errorf("the call: %v", err)
					}
					return nil
				})
				if !errors.Is(err, store.ErrTxTooLong) {
					t.Errorf("the transaction: %v", err)
				}
				var named int
				for _, r := range said.records {
					at, by := attr(r, "waiting"), attr(r, "transaction")
					if at == "" {
						continue
					}
					named++
					if !marked(t, at, "// waits") || !marked(t, by, "// begins") {
						t.Errorf("%s: waits at %q for the transaction of %q", r.Message, at, by)
					}
					if after := r.Time.Sub(began); after != time.Second {
						t.Errorf("said after %v", after)
					}
				}
				if named != 1 {
					t.Errorf("said %d times, want once", named)
				}
			})
		})
	}
}

// record keeps what is logged.
type record struct {
	mu      sync.Mutex
	records []slog.Record
}

func (*record) Enabled(context.Context, slog.Level) bool { return true }
func (r *record) WithAttrs([]slog.Attr) slog.Handler     { return r }
func (r *record) WithGroup(string) slog.Handler          { return r }
func (r *record) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, rec)
	return nil
}

func attr(r slog.Record, key string) (value string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == key {
			value = a.Value.String()
		}
		return true
	})
	return value
}

// marked reports whether a place is a line of this file that ends with a mark.
func marked(t *testing.T, place, mark string) bool {
	t.Helper()
	text, err := os.ReadFile("within_test.go")
	if err != nil {
		t.Fatal(err)
	}
	file, number, _ := strings.Cut(place[strings.LastIndexByte(place, '/')+1:], ":")
	n, err := strconv.Atoi(number)
	lines := strings.Split(string(text), "\n")
	return file == "within_test.go" && err == nil && n <= len(lines) && strings.HasSuffix(lines[n-1], mark)
}
