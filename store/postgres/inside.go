package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// inside runs statements in a user's transaction, one after the other. Nothing
// is set there: limits, planner and durability are the user's.
func (s *Store) inside(tx pgx.Tx) session {
	in := insideTx{s: s, tx: tx}
	if c := tx.Conn(); c != nil {
		switch c.Config().DefaultQueryExecMode {
		case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
			in.guesses = true
		}
	}
	return in
}

type insideTx struct {
	s  *Store
	tx pgx.Tx
	// guesses: the connection guesses the types of arguments, and does not know
	// arrays of ours. Statements are described first then.
	guesses bool
}

func (i insideTx) run(ctx context.Context, steps ...*step) error {
	for _, st := range steps {
		args := st.args
		if i.guesses {
			args = append([]any{pgx.QueryExecModeCacheDescribe}, args...)
		}
		rows, err := i.tx.Query(ctx, i.s.sql(st.text), args...)
		if err != nil {
			return err
		}
		if err := st.read(rows); err != nil {
			rows.Close()
			return err
		}
	}
	return nil
}

// insideSQL is inside for database/sql.
type insideSQL struct {
	s  *Store
	tx *sql.Tx
}

func (i insideSQL) run(ctx context.Context, steps ...*step) error {
	for _, st := range steps {
		if err := i.step(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

func (i insideSQL) step(ctx context.Context, st *step) (err error) {
	rows, err := i.tx.QueryContext(ctx, i.s.sql(st.text), st.args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if st.each == nil {
			continue
		}
		if err := st.each(rows.Scan); err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	return rows.Err()
}
