package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlwork/pawl/supervise"
)

// A tree starts in order, and a Once has succeeded before what follows it is started. It stops in reverse.
func Example() {
	ready := make(chan struct{})
	tree, err := supervise.New(supervise.Config{
		Services: []supervise.Service{
			supervise.Once("migrate", func(context.Context) error {
				fmt.Println("migrated")
				return nil
			}),
			supervise.Loop("listen", func(ctx context.Context) error {
				<-ctx.Done()
				fmt.Println("listener closed")
				return nil
			}),
			supervise.Group("keeper",
				supervise.Every("rescue", time.Minute, func(context.Context) error {
					fmt.Println("rescued what was lost")
					close(ready)
					return nil
				}),
			),
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := tree.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	<-ready
	stuck := tree.Stop(context.Background())
	fmt.Println("did not stop:", stuck)
	for _, s := range tree.Snapshot() {
		fmt.Println(s.Name, s.State, s.Cycles)
	}
	// Output:
	// migrated
	// rescued what was lost
	// listener closed
	// did not stop: []
	// migrate done 1
	// listen stopped 1
	// keeper/rescue stopped 1
}

// A service that has used up its restarts is an error from Wait, with its last failure.
func ExampleSupervisor_Wait() {
	tree, err := supervise.New(supervise.Config{
		Logger: slog.New(slog.DiscardHandler),
		Services: []supervise.Service{
			supervise.Loop("consume", func(context.Context) error {
				return errors.New("connection refused")
			}, supervise.Restart(supervise.Bounded{Max: 3, Window: time.Minute})),
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := tree.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	err = tree.Wait()
	fmt.Println(errors.Is(err, supervise.ErrGaveUp))
	fmt.Println(err)
	tree.Stop(context.Background())
	// Output:
	// true
	// supervise: service "consume": restart budget used up (policy: at most 3 in 1m0s; restarts: 3): connection refused
}

// A loop that runs on hints: Wake asks for a run now, NextIn(0) drains a backlog, and the tick is there in case
// a hint was lost.
func ExampleSupervisor_Wake() {
	backlog := make(chan string, 10)
	idle := make(chan struct{})
	tree, err := supervise.New(supervise.Config{
		Services: []supervise.Service{
			supervise.Every("claim", time.Hour, func(context.Context) error {
				select {
				case job := <-backlog:
					fmt.Println("claimed", job)
					return supervise.NextIn(0)
				default:
					idle <- struct{}{}
					return nil
				}
			}),
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := tree.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	<-idle // the first tick, at once, found nothing
	backlog <- "a"
	backlog <- "b"
	if err := tree.Wake("claim"); err != nil {
		fmt.Println(err)
	}
	<-idle
	tree.Stop(context.Background())
	// Output:
	// claimed a
	// claimed b
}
