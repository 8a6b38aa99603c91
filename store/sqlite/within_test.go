package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
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
			if _, err := tx.EnqueueMany(ctx, pawl.Draft(work{}), pawl.Draft(work{})); err != nil {
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
// savepoint, ends as its handler says.
func TestP3_ARunFinishedWithinIsCountedAndTold(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*sql.Tx) error
		fail error // what the handler returns
		want job.State
		inTx bool
	}{
		"committed":            {(*sql.Tx).Commit, nil, job.Done, true},
		"committed, then fail": {(*sql.Tx).Commit, errors.New("too late to matter"), job.Done, true},
		"rolled back":          {(*sql.Tx).Rollback, errors.New("it failed"), job.Dead, false},
		"rolled back, done":    {(*sql.Tx).Rollback, nil, job.Done, false},
		"to a savepoint": {func(tx *sql.Tx) error {
			_, err := tx.Exec("rollback to before")
			return errors.Join(err, tx.Commit())
		}, errors.New("it failed"), job.Dead, false},
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
					return errors.Join(c.end(stx), c.fail)
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
