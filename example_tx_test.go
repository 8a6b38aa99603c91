package pawl_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// A row's number, made by the database, goes into the job.
func ExampleTx_QueryRow() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()
	if _, err := e.DB().ExecContext(ctx, "create table orders(id integer primary key, cents integer)"); err != nil {
		log.Fatal(err)
	}

	err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
		var id int
		if err := tx.QueryRow(ctx, "insert into orders(cents) values ($1) returning id", 250).Scan(&id); err != nil {
			return err
		}
		_, err := tx.Enqueue(ctx, Ship{Order: id})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	page, _ := e.List(ctx, pawl.Filter{Kind: "ship"}, pawl.Page{})
	fmt.Printf("%s\n", page.Jobs[0].Args)

	err = e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
		return tx.QueryRow(ctx, "select id from orders where cents = $1", 999).Scan(new(int))
	})
	fmt.Println(errors.Is(err, sql.ErrNoRows))
	// Output:
	// {"Order":1}
	// true
}

// Queries are as sqlc writes them for database/sql.
type Queries struct{ db DBTX }

// DBTX is a *sql.DB or a *sql.Tx.
type DBTX interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

// WithTx makes queries of a transaction.
func (q *Queries) WithTx(tx *sql.Tx) *Queries { return &Queries{db: tx} }

// CreateOrder is one query of a user's file.
func (q *Queries) CreateOrder(ctx context.Context, id int64) error {
	_, err := q.db.ExecContext(ctx, "insert into orders(id) values (?)", id)
	return err
}

// What sqlc generated works inside of a transaction with jobs.
func ExampleEngine_Tx_sqlc() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()
	if _, err := e.DB().ExecContext(ctx, "create table orders(id integer primary key)"); err != nil {
		log.Fatal(err)
	}
	queries := &Queries{db: e.DB()}

	err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
		if err := queries.WithTx(sqlite.Unwrap(tx)).CreateOrder(ctx, 7); err != nil {
			return err
		}
		_, err := tx.Enqueue(ctx, Ship{Order: 7})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	var orders int
	if err := e.DB().QueryRow("select count(*) from orders").Scan(&orders); err != nil {
		log.Fatal(err)
	}
	jobs, _ := e.Count(ctx, pawl.Filter{Kind: "ship"}, 0)
	fmt.Println(orders, "order,", jobs.Jobs, "job")
	// Output: 1 order, 1 job
}
