package sqlite_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

type Ship struct{ Order int64 }

func (Ship) Kind() string { return "ship" }

// The caller's own transaction takes a job along.
func ExampleWithin() {
	ctx := context.Background()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	if _, err := e.DB().ExecContext(ctx, "create table orders(id integer primary key)"); err != nil {
		log.Fatal(err)
	}

	tx, err := e.DB().BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "insert into orders(id) values (7)"); err != nil {
		log.Fatal(err)
	}
	if _, err := sqlite.Within(e, tx).Enqueue(ctx, Ship{Order: 7}); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	n, err := e.Count(ctx, pawl.Filter{Kind: "ship"}, 0)
	fmt.Println(n.Jobs, err)
	// Output: 1 <nil>
}
