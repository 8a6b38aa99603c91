package pawl_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Post publishes something in a service that allows only so much.
type Post struct{ Text string }

func (Post) Kind() string { return "post" }

// A service answers 429: its whole queue cools down, in every process, and an operator
// who knows better ends that.
func ExampleThrottled() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	runs := make(chan struct{}, 2)
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"posts": {Workers: 1}},
		Logger: quiet,
		Hooks:  pawl.Hooks{Finish: func(pawl.Finished) { runs <- struct{}{} }},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	status, retryAfter := http.StatusTooManyRequests, 10*time.Minute // what the service answers
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Post]) error {
		if status == http.StatusTooManyRequests {
			return fmt.Errorf("post: %d: %w", status, pawl.Throttled(retryAfter))
		}
		fmt.Printf("posted %s in attempt %d, throttled %d time\n", j.Args.Text, j.Attempt, j.Throttles)
		return nil
	})
	first, err := e.Enqueue(ctx, Post{"hello"}, pawl.Queue("posts"))
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	<-runs

	queues, err := e.Queues(ctx, "posts")
	if err != nil {
		log.Fatal(err)
	}
	c := queues[0].CoolDown
	fmt.Println("cools down for", c.Until.Sub(c.Since), "after", c.Throttles, "throttle")
	why, err := e.Why(ctx, first.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(why.Code)

	status = http.StatusOK
	if err := e.Queue("posts").ResetCoolDown(pawl.As(ctx, "ann", "they raised our quota")); err != nil {
		log.Fatal(err)
	}
	<-runs
	stop()
	<-ended
	// Output:
	// cools down for 10m0s after 1 throttle
	// cooling
	// posted hello in attempt 1, throttled 1 time
}
