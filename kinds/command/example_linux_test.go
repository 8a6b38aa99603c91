package command_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/command"
	"github.com/pawlwork/pawl/store/sqlite"
)

func ExampleRegister() {
	// command.Guard() is the first line of main.
	ctx, stop := context.WithCancel(context.Background())
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 2}},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = command.Register(e, command.Config{
		Root:  os.TempDir(),
		Allow: []command.Program{{Name: "count", Path: "/usr/bin/wc", Args: []string{"-c"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	worked := make(chan error, 1)
	go func() { worked <- e.Run(ctx) }()

	r, err := e.Enqueue(ctx, command.Run{Program: "count", Stdin: "twelve bytes"})
	if err != nil {
		log.Fatal(err)
	}
	result, err := pawl.Result[command.Result](ctx, e, r.ID, pawl.UntilEnded())
	fmt.Print(result.Stdout, err)
	stop()
	if err := <-worked; err != nil {
		log.Fatal(err)
	}
	// Output:
	// 12
	// <nil>
}
