package pawl_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

type ImportFile struct{ Name string }

func (ImportFile) Kind() string { return "import_file" }

// Two files of a tenant at once in the whole cluster, and tenants in turn.
func ExampleLimit_perKey() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"imports": {Workers: 10}},
		Limits: []pawl.Limit{{Name: "tenants", Queue: "imports", PerKey: true, Concurrent: 2}},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	started, release := make(chan string), make(chan struct{})
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[ImportFile]) error {
		started <- pawl.InfoFrom(ctx).Key
		<-release
		return nil
	})
	var last pawl.Receipt
	for i := range 3 {
		name := fmt.Sprint(i, ".csv")
		if last, err = e.Enqueue(ctx, ImportFile{name}, pawl.Queue("imports"), pawl.Key("acme")); err != nil {
			fmt.Println(err)
		}
	}
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	fmt.Println(<-started, <-started)
	why, err := e.Why(ctx, last.ID)
	fmt.Println(why)
	if err != nil {
		fmt.Println(err)
	}
	close(release)
	fmt.Println(<-started)
	stop()
	fmt.Println(<-done)
	// Output:
	// acme acme
	// ready: key acme of limit tenants is at its bound, 2 of 2 run
	// acme
	// <nil>
}
