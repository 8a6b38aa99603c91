// Welcome is the smallest whole program: one kind of job on an embedded store.
// Stop it with Ctrl-C; what was accepted and not done runs at the next start.
package main

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

type Welcome struct {
	UserID int64 `json:"user_id"`
}

func (Welcome) Kind() string { return "welcome" }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	e, err := pawl.New(sqlite.File("work.db"), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		fmt.Println("welcome", j.Args.UserID, "attempt", j.Attempt)
		return nil
	})
	if _, err := e.Enqueue(ctx, Welcome{UserID: 42}); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil { // works until ctx ends, then stops gracefully; nil when clean
		log.Fatal(err)
	}
}
