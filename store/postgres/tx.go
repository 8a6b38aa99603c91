package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/log"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Begin opens a transaction of the user's pool in which jobs and the user's own
// rows commit together. One that does nothing for Options.TxIdle is ended by the
// server, and its next call is answered ErrTxTooLong.
func (s *Store) Begin(ctx context.Context) (store.Tx, error) {
	if err := s.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.pg.Leave()
	tx, err := s.begin(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, pg.Explain("begin", err)
	}
	o := &ownTx{within: within{s: s, in: s.pg.Inside(tx), tx: tx}}
	s.begun.add(o)
	return o, nil
}

// begin passes over connections of the pool that broke while they were idle:
// nothing has happened on them, and the next one may be new. A server that takes
// no connection is another matter, and the caller's.
func (s *Store) begin(ctx context.Context) (pgx.Tx, error) {
	for broken := int32(0); ; broken++ {
		tx, err := s.pg.Users.BeginTx(ctx, pgx.TxOptions{BeginQuery: "BEGIN; SELECT " + pg.Durability + ", " +
			"set_config('idle_in_transaction_session_timeout', '" + pg.Milliseconds(s.options.TxIdle) + "', true)"})
		var connect *pgconn.ConnectError
		if err == nil || ctx.Err() != nil || errors.As(err, &connect) || pg.Meaning(err) != store.ErrUnavailable || broken == s.pg.Users.Stat().MaxConns() {
			return tx, err
		}
	}
}

// Within lets the caller's own transaction take jobs along. The caller ends it:
// Commit and Rollback of what is returned are errors.
func (s *Store) Within(tx pgx.Tx) store.Tx {
	w := &within{s: s, tx: tx}
	switch {
	case tx == nil:
		w.fault = fmt.Errorf("%w: it is nil", store.ErrForeignTx)
	case tx.Conn() != nil && tx.Conn().Config().Database != s.database:
		w.fault = fmt.Errorf("%w: it is one of database %q, the store is in %q", store.ErrForeignTx, tx.Conn().Config().Database, s.database)
	default:
		w.in = s.pg.Inside(tx)
	}
	return w
}

// WithinSQL is Within for a transaction of database/sql, over pgx's stdlib: one
// of DB, or of any database/sql handle on the same database.
func (s *Store) WithinSQL(tx *sql.Tx) store.Tx {
	w := &within{s: s, sql: tx}
	if tx == nil {
		w.fault = fmt.Errorf("%w: it is nil", store.ErrForeignTx)
	} else {
		w.in = s.pg.InsideSQL(tx)
	}
	return w
}

// within is a transaction of the user's own.
type within struct {
	s     *Store
	in    pg.Session
	tx    pgx.Tx  // one of these two
	sql   *sql.Tx // is set
	fault error
}

// enter refuses calls on a closed store and on what is no transaction.
func (w *within) enter(ctx context.Context) error {
	if w.fault != nil {
		return w.fault
	}
	return w.s.pg.Enter(ctx)
}

// Enqueue accepts drafts with the transaction. Its commit cannot be seen from
// here, so it carries hints for claims: they are rows, found whenever the commit
// comes, and everybody is told soon to look for them.
func (w *within) Enqueue(ctx context.Context, drafts []job.Draft) ([]job.Receipt, error) {
	if err := w.enter(ctx); err != nil {
		return nil, err
	}
	defer w.s.pg.Leave()
	receipts, told, err := w.s.jobs.EnqueueIn(ctx, w.in, drafts)
	if err != nil {
		return nil, pg.Explain("enqueue", w.foreign(err))
	}
	return receipts, pg.Explain("enqueue", w.s.hints.Leave(ctx, w.in, told))
}

// Finish ends runs with the transaction.
func (w *within) Finish(ctx context.Context, worker job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	if err := w.enter(ctx); err != nil {
		return nil, err
	}
	defer w.s.pg.Leave()
	verdicts, told, err := w.s.jobs.FinishIn(ctx, w.in, worker, ends)
	if err != nil {
		return nil, pg.Explain("finish", w.foreign(err))
	}
	return verdicts, pg.Explain("finish", w.s.hints.Leave(ctx, w.in, told))
}

// foreign explains a transaction that does not know the store's tables.
func (w *within) foreign(err error) error {
	if pg.HasCode(err, "42P01", "3F000") {
		return fmt.Errorf("%w: %w", store.ErrForeignTx, err)
	}
	return err
}

// Exec runs the user's own SQL.
func (w *within) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	if w.fault != nil {
		return 0, w.fault
	}
	if w.sql != nil {
		r, err := w.sql.ExecContext(ctx, text, args...)
		if err != nil {
			return 0, pg.Because(ctx, err)
		}
		return r.RowsAffected()
	}
	tag, err := w.tx.Exec(ctx, text, args...)
	return tag.RowsAffected(), ofUser(ctx, err)
}

// Query runs the user's own SQL.
func (w *within) Query(ctx context.Context, text string, args ...any) (store.Rows, error) {
	if w.fault != nil {
		return nil, w.fault
	}
	if w.sql != nil {
		rows, err := w.sql.QueryContext(ctx, text, args...)
		if err != nil {
			return nil, pg.Because(ctx, err)
		}
		return rows, nil
	}
	rows, err := w.tx.Query(ctx, text, args...)
	if err != nil {
		return nil, ofUser(ctx, err)
	}
	return userRows{rows, ctx}, nil
}

// ofUser names the end of a transaction that was held too long or whose
// connection broke, and why the context ended. Other errors of the user's SQL
// are the user's.
func ofUser(ctx context.Context, err error) error {
	switch m := pg.Meaning(err); {
	case err == nil:
	case strings.Contains(err.Error(), "conn busy"): // as pgx has it, which names no sentinel
		return fmt.Errorf("%w transaction: rows of an earlier query are still open, close them first: %w", job.ErrInvalid, err)
	case ctx.Err() != nil:
		return pg.Because(ctx, err)
	case pg.Meant(err):
	case m == store.ErrTxTooLong, m == store.ErrUnavailable:
		return fmt.Errorf("%w: %w", m, err)
	}
	return err
}

// userRows end as store.Rows do.
type userRows struct {
	pgx.Rows
	ctx context.Context
}

func (r userRows) Err() error { return ofUser(r.ctx, r.Rows.Err()) }

func (r userRows) Close() error {
	r.Rows.Close()
	return r.Err()
}

// Commit is the caller's.
func (w *within) Commit(context.Context) error { return w.notOurs("commit") }

// Rollback is the caller's.
func (w *within) Rollback(context.Context) error { return w.notOurs("roll back") }

func (w *within) notOurs(what string) error {
	return fmt.Errorf("pawl: %s the transaction itself: it is the caller's own", what)
}

// ownTx is a transaction that Begin opened. Its commit can be seen, so claims
// are told after it, and nothing is written for them.
type ownTx struct {
	within
	hints hints.Set
	asked bool // a running job was asked to stop

	intended       bool // intents were left
	published      log.Published
	foreignIntents bool // some of a kind that other builds apply
}

// Enqueue accepts drafts with the transaction.
func (o *ownTx) Enqueue(ctx context.Context, drafts []job.Draft) ([]job.Receipt, error) {
	if err := o.enter(ctx); err != nil {
		return nil, err
	}
	defer o.s.pg.Leave()
	receipts, told, err := o.s.jobs.EnqueueIn(ctx, o.in, drafts)
	o.hints.Join(told)
	return receipts, pg.Explain("enqueue", o.foreign(err))
}

// Finish ends runs with the transaction.
func (o *ownTx) Finish(ctx context.Context, worker job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	if err := o.enter(ctx); err != nil {
		return nil, err
	}
	defer o.s.pg.Leave()
	verdicts, told, err := o.s.jobs.FinishIn(ctx, o.in, worker, ends)
	if err != nil {
		return nil, pg.Explain("finish", o.foreign(err))
	}
	o.hints.Join(told)
	return verdicts, nil
}

// Commit ends it; nil means that it is on disk.
func (o *ownTx) Commit(ctx context.Context) error {
	if err := o.enter(ctx); err != nil {
		return errors.Join(err, o.Rollback(ctx))
	}
	defer o.s.pg.Leave()
	defer o.s.begun.remove(o)
	broken := o.tx.Conn().IsClosed()
	if err := o.tx.Commit(ctx); err != nil {
		if errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, pgx.ErrTxCommitRollback) {
			return err
		}
		f := pg.Sent(err)
		if f.Unknown && !broken && !pg.HasCode(err, "25P03") {
			o.tell()
			return pg.Failure("commit", err, true)
		}
		return pg.Explain("commit", err)
	}
	o.tell()
	return nil
}

// Rollback undoes it. After an end it does nothing.
func (o *ownTx) Rollback(ctx context.Context) error {
	defer o.s.begun.remove(o)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := o.tx.Rollback(ctx)
	if err == nil || errors.Is(err, pgx.ErrTxClosed) || o.tx.Conn().IsClosed() {
		return nil // a connection that is gone takes the transaction along
	}
	return pg.Explain("roll back", err)
}
