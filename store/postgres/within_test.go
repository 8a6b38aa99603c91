package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/sqlite"
)

// What sqlc generates: for pgx and for database/sql.
type (
	pgxDBTX interface {
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
		Query(context.Context, string, ...any) (pgx.Rows, error)
		QueryRow(context.Context, string, ...any) pgx.Row
	}
	sqlDBTX interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
		PrepareContext(context.Context, string) (*sql.Stmt, error)
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}
	pgxQueries struct{ db pgxDBTX }
	sqlQueries struct{ db sqlDBTX }
	queries    interface {
		AddOrder(ctx context.Context, cents int) (int64, error)
	}
)

const addOrder = "insert into orders (cents) values ($1) returning id"

func (q pgxQueries) AddOrder(ctx context.Context, cents int) (id int64, err error) {
	return id, q.db.QueryRow(ctx, addOrder, cents).Scan(&id)
}

func (q sqlQueries) AddOrder(ctx context.Context, cents int) (id int64, err error) {
	stmt, err := q.db.PrepareContext(ctx, addOrder)
	if err != nil {
		return 0, err
	}
	defer stmt.Close()
	return id, stmt.QueryRowContext(ctx, cents).Scan(&id)
}

// onBoth runs a test of the facade's transactions on an engine of each store.
func onBoth(t *testing.T, test func(t *testing.T, e *pawl.Engine, unwrap func(*pawl.Tx) queries)) {
	run := func(name, ddl string, o func(t *testing.T) store.Opener, unwrap func(*pawl.Tx) queries) {
		t.Run(name, func(t *testing.T) {
			e, err := pawl.New(o(t), pawl.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			err = e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
				_, err := tx.Exec(ctx, ddl)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			test(t, e, unwrap)
		})
	}
	run("sqlite", "create table orders (id integer primary key, cents integer not null)",
		func(*testing.T) store.Opener { return sqlite.Memory() },
		func(tx *pawl.Tx) queries { return sqlQueries{sqlite.Unwrap(tx)} })
	run("postgres", "create table orders (id bigserial primary key, cents integer not null)", func(t *testing.T) store.Opener {
		db := need.Postgres(t)
		// The user's own table lives beside the store's, in the schema of the test.
		p := pool(t, db)
		return postgres.Pool(p, postgres.Options{Schema: db.Schema})
	}, func(tx *pawl.Tx) queries { return pgxQueries{postgres.Unwrap(tx)} })
}

// Generated queries run in the transaction of Engine.Tx, and commit with its jobs.
func TestP3_GeneratedQueriesCommitWithTheJobs(t *testing.T) {
	onBoth(t, func(t *testing.T, e *pawl.Engine, unwrap func(*pawl.Tx) queries) {
		boom := errors.New("boom")
		for _, fail := range []error{boom, nil} {
			err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
				id, err := unwrap(tx).AddOrder(ctx, 250)
				if err != nil || id == 0 {
					t.Errorf("order %d: %v", id, err)
				}
				var cents int
				if err := tx.QueryRow(ctx, "select cents from orders where id = $1", id).Scan(&cents); err != nil || cents != 250 {
					t.Errorf("the order is not in the transaction: %d, %v", cents, err)
				}
				if _, err := tx.Enqueue(ctx, ordinary{}); err != nil {
					return err
				}
				return fail
			})
			if !errors.Is(err, fail) {
				t.Errorf("got %v, want %v", err, fail)
			}
		}
		var orders int
		err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			return tx.QueryRow(ctx, "select count(*) from orders").Scan(&orders)
		})
		if jobs, _ := e.Count(t.Context(), pawl.Filter{}, 0); err != nil || orders != 1 || jobs.Jobs != 1 {
			t.Errorf("%d orders, %d jobs, want one each (%v)", orders, jobs.Jobs, err)
		}
	})
}

// No rows is an answer, and no error of the SQL is mistaken for it.
func TestTx_QueryRowOnBothStores(t *testing.T) {
	onBoth(t, func(t *testing.T, e *pawl.Engine, _ func(*pawl.Tx) queries) {
		try := func(query string, args ...any) (n int, err error) {
			e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error { // each in its own: Postgres ends one at the first error
				err = tx.QueryRow(ctx, query, args...).Scan(&n)
				return err
			})
			return n, err
		}
		if n, err := try("insert into orders (cents) values (5), (6) returning cents"); err != nil || n != 5 {
			t.Errorf("the first of two rows: %d, %v", n, err)
		}
		if _, err := try("select cents from orders where cents = $1", 7); !errors.Is(err, sql.ErrNoRows) || !errors.Is(err, pawl.ErrNoRows) {
			t.Errorf("no rows: %v, want sql.ErrNoRows", err)
		}
		for what, query := range map[string]string{
			"no table":        "select cents from no_such_table",
			"no SQL":          "selekt 1",
			"a broken rule":   "insert into orders (cents) values (null) returning cents",
			"not into an int": "select 'seven'",
			"two columns":     "select 1, 2",
		} {
			if _, err := try(query); err == nil || errors.Is(err, sql.ErrNoRows) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// Each Unwrap knows its own store's transactions, however they began.
func TestUnwrap_TheCallersOwnTransactionToo(t *testing.T) {
	onBoth(t, func(t *testing.T, e *pawl.Engine, _ func(*pawl.Tx) queries) {
		err := e.Tx(t.Context(), func(_ context.Context, tx *pawl.Tx) error {
			if (sqlite.Unwrap(tx) == nil) == (postgres.Unwrap(tx) == nil) {
				t.Errorf("one of the two knows the transaction: %v %v", sqlite.Unwrap(tx), postgres.Unwrap(tx))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		own, err := e.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer own.Rollback()
		if _, ok := e.Store().(*sqlite.Store); ok && sqlite.Unwrap(sqlite.Within(e, own)) != own {
			t.Error("the caller's own transaction is not what Unwrap gives back")
		}
	})
}

// A run that ends in a transaction of the caller's own is counted and told,
// although nobody tells of its commit.
func TestP3_ARunFinishedWithinIsCountedAndTold(t *testing.T) {
	db := need.Postgres(t)
	p := pool(t, db)
	told := make(chan pawl.Finished, 10)
	e, err := pawl.New(postgres.Pool(p, postgres.Options{Schema: db.Schema}), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 2}}, Hooks: pawl.Hooks{Finish: func(f pawl.Finished) { told <- f }},
	})
	if err != nil {
		t.Fatal(err)
	}
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[leavesItsTx]) error { // through pgx
		tx, err := p.Begin(ctx)
		if err != nil {
			return err
		}
		if err := postgres.Within(e, tx).Finish(j); err != nil {
			return err
		}
		return errors.Join(tx.Commit(ctx), errors.New("too late to matter"))
	})
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[ordinary]) error { // through database/sql
		tx, err := e.DB().BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := postgres.WithinSQL(e, tx).Finish(j); err != nil {
			return err
		}
		return tx.Commit()
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for i, item := range []pawl.Item{
		pawl.NewItem(leavesItsTx{}, pawl.Attempts(1)),
		pawl.NewItem(ordinary{}, pawl.Attempts(1)),
		pawl.NewItem(leavesItsTx{}, pawl.Attempts(1), pawl.Unique(pawl.ByKey("a"))), // ends in more than one statement
		pawl.NewItem(ordinary{}, pawl.Attempts(1), pawl.Unique(pawl.ByKey("b"))),
	} {
		r, err := e.EnqueueMany(ctx, item)
		if err != nil {
			t.Fatal(err)
		}
		if f := <-told; f.ID != r[0].ID || f.State != job.Done || !f.InTx {
			t.Errorf("told %+v", f)
		}
		if s := e.Stats(); s.InTx != uint64(i+1) || s.Unclear+s.Refused != 0 {
			t.Errorf("counted %+v", s)
		}
	}
	cancel()
	if err := errors.Join(<-ended, e.Close()); err != nil {
		t.Error(err)
	}
}
