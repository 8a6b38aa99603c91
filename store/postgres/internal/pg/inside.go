package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/job"
)

// Inside runs statements in a user's transaction, one after the other. Nothing
// is set there: limits, planner and durability are the user's.
func (s *Link) Inside(tx pgx.Tx) Session {
	in := insideTx{s: s, tx: tx}
	if c := tx.Conn(); c != nil {
		in.mode = describing(c.Config())
	}
	return in
}

type insideTx struct {
	s    *Link
	tx   pgx.Tx
	mode []any // put in front of the arguments
}

func (i insideTx) Run(ctx context.Context, steps ...*Statement) error {
	for _, st := range steps {
		rows, err := i.tx.Query(ctx, i.s.SQL(st.Text), slices.Concat(i.mode, st.Args)...)
		if err != nil {
			return Because(ctx, err)
		}
		if err := st.read(rows); err != nil {
			rows.Close()
			return Because(ctx, err)
		}
	}
	return nil
}

// Whole runs f in a savepoint of a user's transaction: when it fails, what it did
// is undone, and the rest of the transaction goes on. Meanwhile no statement waits
// longer for somebody's lock than where waiting holds up others; the user's own
// limit holds again afterwards.
func Whole(ctx context.Context, in Session, f func() error) error {
	var limit string
	err := in.Run(ctx,
		&Statement{Text: "SAVEPOINT pawl_whole"},
		&Statement{Text: "SELECT current_setting('lock_timeout')", Each: func(scan Scan) error { return scan(&limit) }},
		&Statement{Text: setLock, Args: []any{Milliseconds(SharedLimits.Lock)}})
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		undo := in.Run(ctx, &Statement{Text: "ROLLBACK TO SAVEPOINT pawl_whole"}, &Statement{Text: "RELEASE SAVEPOINT pawl_whole"})
		if undo != nil {
			return fmt.Errorf("%w, after %v", undo, err) // that err cannot pass for one that changed nothing
		}
		return err
	}
	return in.Run(ctx, &Statement{Text: setLock, Args: []any{limit}}, &Statement{Text: "RELEASE SAVEPOINT pawl_whole"})
}

// Because says why the context ended under a statement (a lost lease, a stop):
// the driver only says that it did.
func Because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// InsideSQL is inside for database/sql. A handle does not tell the mode of its
// connections: it is taken to be that of the store's pool.
func (s *Link) InsideSQL(tx *sql.Tx) Session {
	return insideSQLTx{s, tx, describing(s.Users.Config().ConnConfig)}
}

type insideSQLTx struct {
	s    *Link
	tx   *sql.Tx
	mode []any
}

func (i insideSQLTx) Run(ctx context.Context, steps ...*Statement) error {
	for _, st := range steps {
		if err := i.step(ctx, st); err != nil {
			return Because(ctx, err)
		}
	}
	return nil
}

func (i insideSQLTx) step(ctx context.Context, st *Statement) (err error) {
	rows, err := i.tx.QueryContext(ctx, i.s.SQL(st.Text), slices.Concat(i.mode, st.Args)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if st.Each == nil {
			continue
		}
		if err := st.Each(scanSQL(rows)); err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	return rows.Err()
}

// scanSQL reads a row as pgx would: database/sql cannot read a uuid into bytes.
func scanSQL(rows *sql.Rows) Scan {
	return func(dest ...any) error {
		for i, d := range dest {
			if id, ok := d.(*[16]byte); ok {
				dest[i] = (*job.ID)(id)
			}
		}
		return rows.Scan(dest...)
	}
}
