package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Within lets the caller's own transaction take jobs along: they exist when it
// commits. The transaction must be one of the engine's DB; any other is refused
// at its first use, because two SQLite libraries on one file corrupt it. So is nil.
func Within(e *pawl.Engine, tx *sql.Tx) *pawl.Tx {
	s, ok := e.Store().(*Store)
	if !ok {
		return e.Within(foreign{errElsewhere})
	}
	if tx == nil {
		return e.Within(foreign{errMissing})
	}
	return e.Within(s.Within(tx))
}

// Unwrap is the transaction of database/sql behind one of Engine.Tx or Within,
// for libraries that take one (sqlc, gorm, bun): what they write commits with
// the jobs. Whoever began it ends it, so do not end that of Engine.Tx. It is
// nil for a transaction that is not of SQLite.
func Unwrap(tx *pawl.Tx) *sql.Tx {
	switch t := tx.Store().(type) {
	case ownTx:
		return t.tx
	case within:
		return t.tx
	}
	return nil
}

// foreign is what is no transaction of the store's: each call says why.
type foreign struct{ fault error }

var (
	errElsewhere = fmt.Errorf("%w: the engine is not on SQLite", store.ErrForeignTx)
	errMissing   = fmt.Errorf("%w: it is nil", store.ErrForeignTx)
)

func (f foreign) Enqueue(context.Context, []job.Draft) ([]job.Receipt, error) { return nil, f.fault }

func (f foreign) Finish(context.Context, job.WorkerID, []job.End) ([]job.Verdict, error) {
	return nil, f.fault
}

func (f foreign) Cancel(context.Context, []job.ID, store.Operator) ([]store.Change, error) {
	return nil, f.fault
}

func (f foreign) Retry(context.Context, []job.ID, store.Operator) ([]store.Change, error) {
	return nil, f.fault
}

func (f foreign) Delete(context.Context, []job.ID, store.Operator) ([]store.Change, error) {
	return nil, f.fault
}

func (f foreign) Intend(context.Context, []store.Intent) error { return f.fault }

func (f foreign) Exec(context.Context, string, ...any) (int64, error) { return 0, f.fault }

func (f foreign) Query(context.Context, string, ...any) (store.Rows, error) { return nil, f.fault }

func (f foreign) Commit(context.Context) error   { return f.fault }
func (f foreign) Rollback(context.Context) error { return f.fault }
