package pawl_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	_ "time/tzdata" // the zones, where the machine may have none

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

type Report struct {
	Shop string `json:"shop"`
}

func (Report) Kind() string { return "report" }

// A schedule enqueues a job at each due time, once in the whole cluster.
func ExampleSchedule() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Logger: slog.New(slog.DiscardHandler),
		Queues: pawl.Queues{"default": {Workers: 10}},
		Schedules: []pawl.Schedule{
			{Name: "every-second", Cron: "* * * * * *", Zone: "Europe/Berlin", Job: Report{Shop: "main"}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Report]) error {
		fmt.Println("report of", j.Args.Shop, "by", pawl.InfoFrom(ctx).Headers()["pawl-schedule"])
		stop()
		return nil
	})
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: report of main by every-second
}

// An operator makes a schedule that no code declares, looks at it, runs it by hand and
// removes it.
func ExampleScheduleHandle() {
	e := newEngine()
	defer e.Close()

	ctx := pawl.As(context.Background(), "ann", "until the new shop is open")
	err := e.Schedule("weekly").Create(ctx, pawl.Schedule{Cron: "0 8 * * mon", Zone: "Europe/Berlin", Job: Report{Shop: "new"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Schedule("weekly").Set(ctx, pawl.ScheduleSettings{Cron: "0 8 * * mon-fri", Priority: 2}); err != nil {
		log.Fatal(err)
	}
	if err := e.Schedule("weekly").Set(ctx, pawl.ScheduleSettings{Cron: "0 25 * * *"}); err != nil {
		fmt.Println(err)
	}
	if _, err := e.Schedule("weekly").Trigger(ctx); err != nil { // now, beside its due times
		log.Fatal(err)
	}
	if err := e.Schedule("weekly").Pause(ctx); err != nil {
		log.Fatal(err)
	}
	list, err := e.Schedules(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range list {
		fmt.Println(s.Name, s.Holds.Cron, s.Holds.Zone, "paused:", s.Paused, "by", s.By)
	}
	if err := e.Schedule("weekly").Delete(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// pawl: invalid cron "0 25 * * *": hour "25": must be 0..23
	// weekly 0 8 * * mon-fri Europe/Berlin paused: true by ann
}
