// Command commands runs a program as a job and prints what it said.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/command"
	"github.com/pawlwork/pawl/store/sqlite"
)

func main() {
	command.Guard() // first of all: see below

	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 2}},
	})
	if err != nil {
		return err
	}
	defer e.Close()

	err = command.Register(e, command.Config{
		Root: os.TempDir(),
		Allow: []command.Program{{
			Name:  "count",
			Path:  "/usr/bin/wc",
			Args:  []string{"-c"},
			Check: noArguments,
			Exit: map[int]error{
				2:  pawl.Dead(errors.New("wrong use")),
				75: pawl.Snooze(time.Minute), // EX_TEMPFAIL
			},
		}},
	})
	if err != nil {
		return err
	}
	working, ended := context.WithCancel(ctx)
	defer ended()
	worked := make(chan error, 1)
	go func() { worked <- e.Run(working) }()

	r, err := e.Enqueue(ctx, command.Run{Program: "count", Stdin: "twelve bytes"})
	if err != nil {
		return err
	}
	result, err := pawl.Result[command.Result](ctx, e, r.ID, pawl.UntilEnded())
	if err != nil {
		return err
	}
	fmt.Print(result.Stdout) // 12
	ended()
	return <-worked
}

// noArguments keeps jobs from naming files: wc would print how long they are.
func noArguments(args []string) error {
	if len(args) > 0 {
		return errors.New("takes none")
	}
	return nil
}
