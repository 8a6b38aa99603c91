package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Within lets the caller's own transaction take jobs along: they exist when it
// commits. It must be one of the store's database; the caller ends it.
func Within(e *pawl.Engine, tx pgx.Tx) *pawl.Tx {
	s, ok := of(e.Store())
	if !ok {
		return e.Within(foreign{})
	}
	return e.Within(s.Within(tx))
}

// WithinSQL is Within for a transaction of database/sql, one of the engine's DB
// or of another handle on the same database that uses pgx.
func WithinSQL(e *pawl.Engine, tx *sql.Tx) *pawl.Tx {
	s, ok := of(e.Store())
	if !ok {
		return e.Within(foreign{})
	}
	return e.Within(s.WithinSQL(tx))
}

// Unwrap is the pgx transaction behind one of Engine.Tx or Within, for what
// database/sql has no words for, such as COPY. It is nil for any other.
func Unwrap(tx *pawl.Tx) pgx.Tx {
	switch t := tx.Store().(type) {
	case *ownTx:
		return t.tx
	case *within:
		return t.tx
	}
	return nil
}

// foreign is a transaction for an engine that is not on Postgres.
type foreign struct{}

func (foreign) Enqueue(context.Context, []job.Draft) ([]job.Receipt, error) {
	return nil, store.ErrForeignTx
}

func (foreign) Finish(context.Context, job.WorkerID, []job.End) ([]job.Verdict, error) {
	return nil, store.ErrForeignTx
}

func (foreign) Exec(context.Context, string, ...any) (int64, error) { return 0, store.ErrForeignTx }

func (foreign) Query(context.Context, string, ...any) (store.Rows, error) {
	return nil, store.ErrForeignTx
}

func (foreign) Commit(context.Context) error   { return store.ErrForeignTx }
func (foreign) Rollback(context.Context) error { return store.ErrForeignTx }
