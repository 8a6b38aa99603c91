package sqlite

import (
	"context"
	"database/sql"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Within lets the caller's own transaction take jobs along: they exist when it
// commits. The transaction must be one of the engine's DB; any other is refused
// at its first use, because two SQLite libraries on one file corrupt it.
func Within(e *pawl.Engine, tx *sql.Tx) *pawl.Tx {
	s, ok := e.Store().(*Store)
	if !ok {
		return e.Within(foreign{})
	}
	return e.Within(s.Within(tx))
}

// foreign is a transaction for an engine that is not on SQLite.
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
