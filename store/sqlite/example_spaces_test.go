package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Two tenants of one file in one process share its connections.
func ExampleNewSpaces() {
	folder, err := os.MkdirTemp("", "pawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "work.db")
	engines := map[string]*pawl.Engine{}

	spaces := sqlite.NewSpaces(path)
	defer spaces.Close()
	for _, tenant := range []string{"acme", "globex"} {
		e, err := pawl.New(spaces, pawl.Config{Namespace: tenant, Queues: pawl.Queues{"default": {Workers: 2}}})
		if err != nil {
			log.Fatal(err)
		}
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Ship]) error {
			fmt.Println(tenant, "ships", j.Args.Order)
			return nil
		})
		engines[tenant] = e
	}

	ctx := context.Background()
	if _, err := engines["acme"].Enqueue(ctx, Ship{Order: 7}); err != nil {
		log.Fatal(err)
	}
	for _, tenant := range []string{"acme", "globex"} {
		n, err := engines[tenant].Count(ctx, pawl.Filter{}, 0)
		fmt.Println(tenant, "has", n.Jobs, "jobs", err)
	}
	// Output:
	// acme has 1 jobs <nil>
	// globex has 0 jobs <nil>
}
