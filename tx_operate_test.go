package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store/sqlite"
)

// What an operator changes in a transaction commits with it, entries of the audit
// log too, and a rollback leaves nothing of it.
func TestP3_OperatorsVerbsInATransaction(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		table(t, e)
		ctx := pawl.As(t.Context(), "ann", "the order was withdrawn")
		cancelled, deleted, retried := e.Enqueue(Welcome{1}), e.Enqueue(Welcome{2}), e.Enqueue(Welcome{3})
		if _, err := e.Cancel(t.Context(), retried.ID); err != nil {
			t.Fatal(err)
		}
		boom := errors.New("boom")
		for _, fail := range []error{boom, nil} {
			err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
				_, err := tx.Exec(ctx, "insert into effect values (1)")
				c, cancel := tx.Cancel(ctx, cancelled.ID)
				d, remove := tx.Delete(ctx, deleted.ID)
				r, retry := tx.Retry(ctx, retried.ID)
				n, nobody := tx.Cancel(ctx, job.NewID())
				if c != pawl.Changed || d != pawl.Changed || r != pawl.Changed || n != pawl.NotFound {
					t.Errorf("cancel %v, delete %v, retry %v, of nobody %v", c, d, r, n)
				}
				return errors.Join(err, cancel, remove, retry, nobody, fail)
			})
			if !errors.Is(err, fail) {
				t.Errorf("got %v, want %v", err, fail)
			}
			audit, err := e.Audit(t.Context(), pawl.AuditFilter{By: "ann"}, pawl.AuditPage{})
			if err != nil {
				t.Fatal(err)
			}
			if fail != nil {
				e.RequireState(cancelled.ID, job.Waiting)
				e.RequireState(deleted.ID, job.Waiting)
				e.RequireState(retried.ID, job.Cancelled)
				if len(audit.Entries) != 0 || effects(t, e) != 0 {
					t.Errorf("after a rollback: %d effects, audit %+v", effects(t, e), audit)
				}
				continue
			}
			e.RequireState(cancelled.ID, job.Cancelled)
			e.RequireState(retried.ID, job.Waiting)
			if _, err := e.Get(t.Context(), deleted.ID); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("the deleted job: %v", err)
			}
			if len(audit.Entries) != 3 || audit.Entries[0].Note != "the order was withdrawn" || effects(t, e) != 1 {
				t.Errorf("%d effects, audit %+v", effects(t, e), audit)
			}
		}
	})
}

// A run that a transaction asks to cancel hears of it after the commit, and not
// when a savepoint has taken the cancel back.
func TestJ10_CancelInATransactionReachesTheRunAfterTheCommit(t *testing.T) {
	begun := make(chan pawl.ID, 2)
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			begun <- j.ID
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		first, second := e.Enqueue(Welcome{1}), e.Enqueue(Welcome{2})
		go func() {
			<-begun
			<-begun
			if err := cancelWithin(t, e, first.ID, second.ID); err != nil {
				t.Error(err)
			}
			began := time.Now()
			if j, err := e.Wait(t.Context(), first.ID); err != nil || j.State != job.Cancelled || time.Since(began) > time.Second {
				t.Errorf("%v after %v, %v; want it cancelled within a second", j.State, time.Since(began), err)
			}
			if j, err := e.Get(t.Context(), second.ID); err != nil || j.State != job.Running || j.CancelAsked {
				t.Errorf("%v, asked %v, %v; want that it runs on", j.State, j.CancelAsked, err)
			}
			if _, err := e.Cancel(t.Context(), second.ID); err != nil {
				t.Error(err)
			}
		}()
		e.RunUntilIdle()
		e.RequireState(first.ID, job.Cancelled)
		e.RequireState(second.ID, job.Cancelled)
	})
}

// cancelWithin cancels two running jobs in a transaction of the caller's, and takes
// the second back before the commit.
func cancelWithin(t *testing.T, e *pawltest.Engine, first, second pawl.ID) error {
	tx, err := e.DB().BeginTx(t.Context(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	with := sqlite.Within(e.Engine, tx)
	if _, err := tx.ExecContext(t.Context(), "SAVEPOINT mine"); err != nil {
		return err
	}
	if c, err := with.Cancel(t.Context(), second); err != nil || c != pawl.Asked {
		return fmt.Errorf("cancel the second: %v, %w", c, err)
	}
	if _, err := tx.ExecContext(t.Context(), "ROLLBACK TO mine"); err != nil {
		return err
	}
	if c, err := with.Cancel(t.Context(), first); err != nil || c != pawl.Asked {
		return fmt.Errorf("cancel the first: %v, %w", c, err)
	}
	return tx.Commit()
}

func TestErrForeignTx_OperatorsVerbs(t *testing.T) {
	e := newEngine()
	defer e.Close()
	tx := sqlite.Within(e, nil)
	for name, verb := range map[string]func(context.Context, pawl.ID) (pawl.Change, error){"cancel": tx.Cancel, "retry": tx.Retry, "delete": tx.Delete} {
		if _, err := verb(t.Context(), job.NewID()); !errors.Is(err, pawl.ErrForeignTx) {
			t.Errorf("%s: %v, want ErrForeignTx", name, err)
		}
	}
}
