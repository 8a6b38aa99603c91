package pawl_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

func table(t *testing.T, e *pawltest.Engine) {
	t.Helper()
	if _, err := e.DB().ExecContext(t.Context(), "create table effect(n integer)"); err != nil {
		t.Fatal(err)
	}
}

func effects(t *testing.T, e *pawltest.Engine) (n int) {
	t.Helper()
	if err := e.DB().QueryRowContext(t.Context(), "select count(*) from effect").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestP3_JobsAndRowsCommitTogetherOrNotAtAll(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		table(t, e)
		boom := errors.New("boom")
		for _, fail := range []error{nil, boom} {
			err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
				if _, err := tx.Exec(ctx, "insert into effect values ($1)", 1); err != nil {
					return err
				}
				if _, err := tx.EnqueueMany(ctx, pawl.NewItem(Welcome{1}), pawl.NewItem(Welcome{2})); err != nil {
					return err
				}
				return fail
			})
			if !errors.Is(err, fail) {
				t.Errorf("got %v, want %v", err, fail)
			}
		}
		if n, _ := e.Count(t.Context(), pawl.Filter{}, 0); n.Jobs != 2 || effects(t, e) != 1 {
			t.Errorf("%d jobs, %d rows", n.Jobs, effects(t, e))
		}
	})
}

func TestP3_PanicInTheCallbackRollsBack(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		table(t, e)
		func() {
			defer func() {
				if p := recover(); p != "oh" {
					t.Errorf("recovered %v", p)
				}
			}()
			e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
				tx.Exec(ctx, "insert into effect values (1)")
				panic("oh")
			})
		}()
		if n := effects(t, e); n != 0 {
			t.Errorf("%d rows", n)
		}
		e.Enqueue(Welcome{1}) // the store is not blocked by what was left behind
	})
}

// An effect in the transaction of Finish happens once, also when the handler
// fails after the commit or before it.
func TestP3_FinishInTheTransactionOfTheEffect(t *testing.T) {
	register := func(to *pawl.Engine) {
		e := to
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Charge]) error {
			err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
				if _, err := tx.Exec(ctx, "insert into effect values ($1)", j.Attempt); err != nil {
					return err
				}
				if err := tx.FinishResult(j, Video{Seconds: 3}); err != nil {
					return err
				}
				if j.Attempt == 1 {
					return errors.New("before the commit")
				}
				return nil
			})
			if err != nil {
				return err
			}
			return errors.New("after the commit: changes nothing any more")
		})
	}
	pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
		table(t, e)
		r := e.Enqueue(Charge{1})
		e.RunUntilIdle()
		e.Advance(time.Minute)
		j := e.RequireState(r.ID, job.Done)
		if effects(t, e) != 1 || j.Run != 2 || len(j.Failures.List()) != 1 {
			t.Errorf("%d effects, run %d, failures %v", effects(t, e), j.Run, j.Failures)
		}
		if v, err := pawl.Result[Video](t.Context(), e.Engine, r.ID); err != nil || v.Seconds != 3 {
			t.Errorf("result %v, %v", v, err)
		}
	})
}

func TestErrInsideTx_EngineCallsInTheCallbackAreRefused(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			_, enqueue := e.Engine.Enqueue(ctx, Welcome{1})
			_, cancel := e.Cancel(ctx, job.NewID())
			_, count := e.Count(ctx, pawl.Filter{}, 0)
			nested := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error { return nil })
			for name, err := range map[string]error{"enqueue": enqueue, "cancel": cancel, "count": count, "tx": nested, "pause": e.Queue("a").Pause(ctx)} {
				if !errors.Is(err, pawl.ErrInsideTx) {
					t.Errorf("%s: %v", name, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// The database handle knows the callback's context too: what would wait for the
// transaction around it is answered at once, and reading goes on.
func TestErrInsideTx_WritesOfDBInTheCallbackAreRefused(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		table(t, e)
		var inside context.Context
		begun := time.Now()
		err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			inside = ctx
			_, plain := e.DB().ExecContext(ctx, "insert into effect values (1)")
			_, prepared := e.DB().ExecContext(ctx, "insert into effect values (?)", 1)
			returning := e.DB().QueryRowContext(ctx, "insert into effect values (2) returning 1").Scan(new(int))
			_, begin := e.DB().BeginTx(ctx, nil)
			for name, err := range map[string]error{"exec": plain, "exec with arguments": prepared, "returning": returning, "begin": begin} {
				if !errors.Is(err, pawl.ErrInsideTx) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := e.DB().QueryRowContext(ctx, "select count(*) from effect").Scan(new(int)); err != nil {
				t.Errorf("reading: %v", err)
			}
			reader, err := e.DB().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
			if err != nil {
				t.Errorf("reading in a transaction: %v", err)
			} else if err := reader.Rollback(); err != nil {
				t.Error(err)
			}
			_, err = tx.Exec(ctx, "insert into effect values (3)")
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if waited := time.Since(begun); waited != 0 { // virtual: nobody waited for a limit
			t.Errorf("the transaction took %v", waited)
		}
		if _, err := e.DB().ExecContext(inside, "insert into effect values (4)"); err != nil {
			t.Errorf("after its end: %v", err)
		}
		if n := effects(t, e); n != 2 {
			t.Errorf("%d effects, want those of the transaction and after it", n)
		}
	})
}

func TestP8_TransactionHeldTooLongIsEndedAndOthersGoOn(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		table(t, e)
		held := make(chan error, 1)
		begun := make(chan struct{})
		go func() {
			held <- e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
				if _, err := tx.Exec(ctx, "insert into effect values (1)"); err != nil {
					return err
				}
				close(begun)
				time.Sleep(time.Minute) // virtual
				_, err := tx.Exec(ctx, "insert into effect values (2)")
				return err
			})
		}()
		<-begun
		began := time.Now()
		e.Enqueue(Welcome{1}) // waits for the limit, not for the minute
		if waited := time.Since(began); waited > 10*time.Second {
			t.Errorf("waited %v", waited)
		}
		if err := <-held; !errors.Is(err, store.ErrTxTooLong) {
			t.Errorf("the holder got %v", err)
		}
		if n := effects(t, e); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}

func TestJ2_EnqueueInTheCallersOwnTransaction(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		table(t, e)
		for _, commit := range []bool{true, false} {
			stx, err := e.DB().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stx.Exec("insert into effect values (1)"); err != nil {
				t.Fatal(err)
			}
			tx := sqlite.Within(e.Engine, stx)
			if _, err := tx.Enqueue(t.Context(), Welcome{42}); err != nil {
				t.Fatal(err)
			}
			if commit {
				err = stx.Commit()
			} else {
				err = stx.Rollback()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n, _ := e.Count(t.Context(), pawl.Filter{}, 0); n.Jobs != 1 || effects(t, e) != 1 {
			t.Errorf("%d jobs, %d rows", n.Jobs, effects(t, e))
		}
	})
}

func TestTx_QueryRow(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		table(t, e)
		err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			var n int
			if err := tx.QueryRow(ctx, "select n from effect where n = $1", 5).Scan(&n); !errors.Is(err, pawl.ErrNoRows) {
				t.Errorf("got %v", err)
			}
			if err := tx.QueryRow(ctx, "insert into effect values (5), (6) returning n").Scan(&n); err != nil || n != 5 {
				t.Errorf("got %d, %v", n, err)
			}
			if err := tx.QueryRow(ctx, "select n from effect where n = $1", 6).Scan(&n); err != nil || n != 6 {
				t.Errorf("got %d, %v", n, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// The owner of a transaction does not tell how it ended; a run that it finished
// is not taken for one that lost its lease.
func TestP3_FinishInTheCallersOwnTransaction(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		e := to
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Charge]) error {
			stx, err := e.DB().BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer stx.Rollback()
			if _, err := stx.ExecContext(ctx, "insert into effect values (1)"); err != nil {
				return err
			}
			if err := sqlite.Within(e, stx).Finish(j); err != nil {
				return err
			}
			if j.Run == 1 {
				return errors.New("rolled back")
			}
			return stx.Commit()
		}, pawl.Backoff(pawl.Constant(0)))
	}, func(t *testing.T, e *pawltest.Engine) {
		table(t, e)
		r := e.Enqueue(Charge{5})
		e.RunUntilIdle()
		e.RequireState(r.ID, job.Done)
		if s := e.Stats(); effects(t, e) != 1 || s.Refused != 0 {
			t.Errorf("%d effects, %d refused", effects(t, e), s.Refused)
		}
	})
}

func TestErrInsideTx_AlsoThroughTheTransactionOfAnotherEngine(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		other, err := pawl.New(sqlite.Memory(), pawl.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		err = e.Tx(t.Context(), func(ctx context.Context, _ *pawl.Tx) error {
			return other.Tx(ctx, func(ctx context.Context, _ *pawl.Tx) error {
				_, err := e.Engine.Enqueue(ctx, Welcome{1})
				return err
			})
		})
		if !errors.Is(err, pawl.ErrInsideTx) {
			t.Errorf("got %v", err)
		}
	})
}
