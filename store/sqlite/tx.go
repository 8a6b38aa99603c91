package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

// Begin opens a transaction in which jobs and the user's own rows commit
// together. It holds the write lock until it ends.
func (s *Store) Begin(ctx context.Context) (store.Tx, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		if e := s.usable(ctx); e != nil {
			return nil, e
		}
		return nil, err
	}
	return ownTx{within{s, tx, &watch{}}, &inside{}}, nil
}

// Within lets the caller's own transaction take jobs along. It must be one of
// DB; any other is refused with ErrForeignTx at its first use. The caller ends
// it: Commit and Rollback of what is returned are errors.
func (s *Store) Within(tx *sql.Tx) store.Tx { return within{s, tx, &watch{}} }

type within struct {
	s     *Store
	tx    *sql.Tx
	watch *watch
}

// watch is who wants to know of the end of a transaction.
type watch struct {
	told func(error)
	on   bool // the transaction knows of it
}

// OnEnd has f called when the transaction has ended: its connection is one of
// ours, and sees it.
func (w within) OnEnd(f func(error)) { w.watch.told = f }

// run takes a transition into the transaction, and lets others look at its
// connection once it is done.
func (w within) run(ctx context.Context, run func(*jobs.Transition) error, then ...func(*userConn)) error {
	work := &work{run: func(c *userConn) error {
		switch {
		case c.s != w.s.shared:
			return store.ErrForeignTx
		case c.tx.readOnly:
			return errors.New("pawl: transaction is read-only")
		}
		if w.watch.told != nil && !w.watch.on {
			w.watch.on = true
			c.tx.told = append(c.tx.told, w.watch.told)
		}
		c.t = w.s.transition(c.conn)
		if err := run(&c.t); err != nil {
			return err
		}
		for _, f := range then {
			f(c)
		}
		return nil
	}}
	_, err := w.tx.ExecContext(context.WithValue(ctx, workKey{}, work), workText)
	if !work.ran && (err == nil || !errors.Is(err, sql.ErrTxDone)) && ctx.Err() == nil {
		return store.ErrForeignTx
	}
	return w.s.file.Explain("write to", err)
}

// Enqueue accepts drafts with the transaction.
func (w within) Enqueue(ctx context.Context, drafts []job.Draft) (receipts []job.Receipt, err error) {
	err = w.run(ctx, func(t *jobs.Transition) (err error) {
		receipts, err = whole(t, func() ([]job.Receipt, error) { return t.Enqueue(drafts) })
		return err
	}, func(c *userConn) {
		if slices.ContainsFunc(drafts, func(d job.Draft) bool { return d.Gate != 0 }) {
			c.tx.told = append(c.tx.told, w.s.gatesChanged)
		}
	})
	return receipts, err
}

// Finish ends runs with the transaction.
func (w within) Finish(ctx context.Context, worker job.WorkerID, ends []job.End) (verdicts []job.Verdict, err error) {
	err = w.run(ctx, func(t *jobs.Transition) (err error) {
		verdicts, err = whole(t, func() ([]job.Verdict, error) { return t.Finish(worker, ends) })
		return err
	})
	return verdicts, err
}

// gatesChanged tells claims that jobs may wait behind other gates, when a transaction
// has ended.
func (s *Store) gatesChanged(error) { s.claims.Turns.Stale("") }

// whole undoes a transition that failed halfway, and leaves the rest of the
// user's transaction as it was.
func whole[T any](t *jobs.Transition, f func() ([]T, error)) ([]T, error) {
	if err := t.Exec("SAVEPOINT pawl"); err != nil {
		return nil, err
	}
	answer, err := f()
	if err == nil {
		return answer, t.Exec("RELEASE pawl")
	}
	if !t.Raw.GetAutocommit() {
		err = errors.Join(err, t.Exec("ROLLBACK TO pawl"), t.Exec("RELEASE pawl"))
	}
	return nil, err
}

// Exec runs the user's own SQL.
func (w within) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	r, err := w.tx.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Query runs the user's own SQL.
func (w within) Query(ctx context.Context, text string, args ...any) (store.Rows, error) {
	rows, err := w.tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Commit is the caller's.
func (w within) Commit(context.Context) error { return w.notOurs("commit") }

// Rollback is the caller's.
func (w within) Rollback(context.Context) error { return w.notOurs("roll back") }

func (w within) notOurs(what string) error {
	return fmt.Errorf("pawl: %s the *sql.Tx itself: the transaction is the caller's own", what)
}

// ownTx is a transaction that Begin opened.
type ownTx struct {
	within
	inside *inside
}

var _ store.MarkingTx = ownTx{}

// inside is what a context says of the transaction it belongs to.
type inside struct{ over atomic.Bool }

// insideKey is for each file its own: a transaction of one does not hold up
// another, those of namespaces that share a file do.
type insideKey struct{ s *shared }

// Mark lets DB tell who would wait for this transaction from within. When it is
// over nobody would.
func (o ownTx) Mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, insideKey{o.s.shared}, o.inside)
}

// Commit ends it; nil means that it is on disk.
func (o ownTx) Commit(ctx context.Context) error {
	defer o.inside.over.Store(true)
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), o.Rollback(ctx))
	}
	return o.tx.Commit()
}

// Rollback undoes it. After an end it does nothing.
func (o ownTx) Rollback(context.Context) error {
	defer o.inside.over.Store(true)
	if err := o.tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}
