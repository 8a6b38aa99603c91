package postgres_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store/postgres"
)

type Ship struct{ Order int64 }

func (Ship) Kind() string { return "ship" }

func ship(ctx context.Context, j *pawl.Job[Ship]) error { return nil }

func probesOf(e *pawl.Engine) http.Handler { return http.NotFoundHandler() }

// placeWithin is the caller's own transaction that takes a job along.
func placeWithin(ctx context.Context, e *pawl.Engine, pool *pgxpool.Pool) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "insert into orders(id) values (7)"); err != nil {
		return err
	}
	if _, err := postgres.Within(e, tx).Enqueue(ctx, Ship{Order: 7}); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// Queries are as sqlc writes them for pgx/v5.
type Queries struct{ db DBTX }

// DBTX is a pool, a connection or a transaction.
type DBTX interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}

// WithTx makes queries of a transaction.
func (q *Queries) WithTx(tx pgx.Tx) *Queries { return &Queries{db: tx} }

// CreateOrder is one query of a user's file.
func (q *Queries) CreateOrder(ctx context.Context, id int64) error {
	_, err := q.db.Exec(ctx, "insert into orders(id) values ($1)", id)
	return err
}

// placeWithQueries is a transaction of Pawl's that takes generated queries along.
func placeWithQueries(ctx context.Context, e *pawl.Engine, queries *Queries) error {
	return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
		if err := queries.WithTx(postgres.Unwrap(tx)).CreateOrder(ctx, 8); err != nil {
			return err
		}
		_, err := tx.Enqueue(ctx, Ship{Order: 8})
		return err
	})
}

func worker(ctx context.Context, pool *pgxpool.Pool) error { // ctx ends with SIGTERM: signal.NotifyContext
	e, err := pawl.New(postgres.Pool(pool, postgres.Options{}), pawl.Config{
		Queues:  pawl.Queues{"default": {Workers: 20}, "mail": {Workers: 10, Total: 40}},
		Migrate: pawl.MigrateCheck, // the schema is applied by the deployment, not by each pod
	})
	if err != nil {
		return err
	}
	defer e.Close()
	pawl.Handle(e, ship)
	probes := &http.Server{Addr: ":8080", Handler: probesOf(e)}
	go probes.ListenAndServe()
	defer probes.Close()
	return e.Run(ctx)
}

// A worker of a cluster, whole.
func ExamplePool() { _ = worker }

// What docs/howto/transactions.md shows for Postgres, on a server.
func TestU12_TheTransactionsOfTheHowToRun(t *testing.T) {
	ctx, db := t.Context(), need.Postgres(t)
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = db.Schema
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	e, err := pawl.New(postgres.Pool(pool, postgres.Options{Schema: db.Schema}), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := pool.Exec(ctx, "create table orders(id bigint primary key)"); err != nil {
		t.Fatal(err)
	}
	if err := placeWithin(ctx, e, pool); err != nil {
		t.Fatal(err)
	}
	if err := placeWithQueries(ctx, e, &Queries{db: pool}); err != nil {
		t.Fatal(err)
	}
	if err := placeWithin(ctx, e, pool); err == nil {
		t.Error("an order was placed twice")
	}
	var orders int
	if err := pool.QueryRow(ctx, "select count(*) from orders").Scan(&orders); err != nil {
		t.Fatal(err)
	}
	jobs, err := e.Count(ctx, pawl.Filter{Kind: "ship"}, 0)
	if err != nil || orders != 2 || jobs.Jobs != 2 {
		t.Errorf("%d orders and %d jobs, %v: want 2 of each", orders, jobs.Jobs, err)
	}
}
