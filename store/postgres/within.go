package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Within lets the caller's own transaction take jobs along: they exist when it
// commits. It must be one of the store's database; the caller ends it. Any other
// is refused at its first use with ErrForeignTx, and so is nil.
func Within(e *pawl.Engine, tx pgx.Tx) *pawl.Tx {
	s, ok := of(e.Store())
	if !ok {
		return e.Within(foreign{errElsewhere})
	}
	if isNil(tx) {
		return e.Within(foreign{errMissing})
	}
	return e.Within(s.Within(tx))
}

// WithinSQL is Within for a transaction of database/sql, one of the engine's DB
// or of another handle on the same database that uses pgx.
func WithinSQL(e *pawl.Engine, tx *sql.Tx) *pawl.Tx {
	s, ok := of(e.Store())
	if !ok {
		return e.Within(foreign{errElsewhere})
	}
	if tx == nil {
		return e.Within(foreign{errMissing})
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

// isNil also sees a nil pointer, as of a *pgxpool.Tx that was never set.
func isNil(tx pgx.Tx) bool {
	if tx == nil {
		return true
	}
	v := reflect.ValueOf(tx)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// foreign is what is no transaction of the store's: each call says why.
type foreign struct{ fault error }

var (
	errElsewhere = fmt.Errorf("%w: the engine is not on Postgres", store.ErrForeignTx)
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
