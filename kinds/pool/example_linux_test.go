package pool_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/pool"
	"github.com/pawlwork/pawl/store/sqlite"
)

// The child is a line of sh: it answers each line with the id that is in it.
func ExampleRegister() {
	// pool.Guard() is the first line of main.
	ctx, stop := context.WithCancel(context.Background())
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 2}},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	p, err := pool.Register(e, pool.Config{
		Kinds: []string{"greet"},
		Path:  "/bin/sh",
		Args: []string{"-c", `while IFS='"' read -r _ _ _ id _; do
			echo "{\"id\":\"$id\",\"status\":\"ok\",\"result\":\"hello\"}"
		done`},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	defer e.Close()
	worked := make(chan error, 1)
	go func() { worked <- e.Run(ctx) }()

	r, err := e.Enqueue(ctx, pawl.RawArgs("greet", []byte(`{"who":"you"}`)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pawl.Result[string](ctx, e, r.ID, pawl.UntilEnded()))
	stop()
	if err := <-worked; err != nil {
		log.Fatal(err)
	}
	// Output: hello <nil>
}
