// Program nightly reports every night at three, Berlin time. Start it as often as you
// like: each night has one job. docs/cron.md prints it.
package main

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the zones, where the machine may have none

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

type Report struct {
	Shop string `json:"shop"`
}

func (Report) Kind() string { return "report" }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	e, err := pawl.New(sqlite.File("work.db"), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}},
		Schedules: []pawl.Schedule{
			{Name: "nightly", Cron: "0 3 * * *", Zone: "Europe/Berlin", Job: Report{Shop: "main"}, SkipIfActive: true},
			{Name: "tidy", Cron: "@every 90s", Job: Report{Shop: "outlet"}, Options: []pawl.EnqueueOption{pawl.Priority(9)}, CatchUp: pawl.CatchUpNone},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Report]) error {
		fmt.Println("report of", j.Args.Shop, "due at", pawl.InfoFrom(ctx).Headers()["pawl-due"])
		return nil
	})
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
