package pawl_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Fetch gets a page.
type Fetch struct{ URL string }

func (Fetch) Kind() string { return "fetch" }

// get stands for a call of net/http.
func get(_ context.Context, url string) (status int, retryAfter time.Duration, err error) {
	switch url {
	case "/busy":
		return http.StatusTooManyRequests, time.Hour, nil
	case "/down":
		return http.StatusServiceUnavailable, time.Hour, nil
	case "/report":
		return http.StatusAccepted, 0, nil
	case "/gone":
		return http.StatusNotFound, 0, nil
	}
	return http.StatusOK, 0, nil
}

func fetch(ctx context.Context, j *pawl.Job[Fetch]) error {
	status, retryAfter, err := get(ctx, j.Args.URL)
	switch {
	case err != nil:
		return err // tried again after the backoff
	case status == http.StatusTooManyRequests: // the whole queue cools down
		return fmt.Errorf("%s: %d: %w", j.Args.URL, status, pawl.Throttled(retryAfter))
	case status == http.StatusServiceUnavailable && retryAfter > 0:
		return pawl.RetryIn(retryAfter, fmt.Errorf("%s: %d", j.Args.URL, status))
	case status == http.StatusAccepted:
		return pawl.SnoozeFor(time.Minute, "the report is not ready yet")
	case status == http.StatusNotFound:
		return pawl.Dead(fmt.Errorf("%s: not found", j.Args.URL))
	}
	return nil
}

// Handlers steer by what they return: each of these ends otherwise.
func ExampleRetryIn() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan struct{}, 4)
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}},
		Logger: quiet,
		Hooks:  pawl.Hooks{Finish: func(pawl.Finished) { ended <- struct{}{} }},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	pawl.Handle(e, fetch)

	var items []pawl.Item
	for _, url := range []string{"/", "/down", "/report", "/gone"} {
		items = append(items, pawl.NewItem(Fetch{url}))
	}
	rs, err := e.EnqueueMany(ctx, items...)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for range items {
			<-ended
		}
		stop()
	}()
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	for _, r := range rs {
		j, _ := e.Get(context.Background(), r.ID)
		fmt.Printf("%s: %s, %d attempts burned, %d snoozes\n", j.Args, j.State, j.Used, j.Snoozes)
	}
	// Output:
	// {"URL":"/"}: done, 0 attempts burned, 0 snoozes
	// {"URL":"/down"}: waiting, 1 attempts burned, 0 snoozes
	// {"URL":"/report"}: waiting, 0 attempts burned, 1 snoozes
	// {"URL":"/gone"}: dead, 1 attempts burned, 0 snoozes
}

var failures = new(expvar.Map).Init()

func countFailures(next pawl.Work) pawl.Work {
	return func(ctx context.Context, j *pawl.Info) error {
		err := next(ctx, j)
		switch {
		case err == nil, pawl.IsSnooze(err), pawl.IsThrottled(err):
		case pawl.IsDead(err):
			failures.Add("dead", 1)
		default:
			failures.Add("retry", 1)
		}
		return err
	}
}

// Middleware tells what a handler says from its faults.
func ExampleIsSnooze() {
	ctx := context.Background()
	for _, url := range []string{"/", "/busy", "/down", "/report", "/gone"} {
		work := countFailures(func(ctx context.Context, j *pawl.Info) error {
			return fetch(ctx, &pawl.Job[Fetch]{Info: *j, Args: Fetch{url}})
		})
		_ = work(ctx, &pawl.Info{})
	}
	fmt.Println(failures)
	// Output: {"dead": 1, "retry": 1}
}

var errMaintenance = errors.New("the service is down for maintenance")

// A backoff of one's own sees the error and the attempt.
func ExampleBackoff() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	fetch := func(ctx context.Context, j *pawl.Job[Fetch]) error {
		stop()
		return fmt.Errorf("%s: %w", j.Args.URL, errMaintenance)
	}
	pawl.Handle(e, fetch, pawl.Backoff(func(f pawl.FailedAttempt) time.Duration {
		if errors.Is(f.Err, errMaintenance) {
			return time.Hour
		}
		return pawl.Exponential(time.Second, time.Minute)(f)
	}))
	r, err := e.Enqueue(ctx, Fetch{"/"})
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	j, _ := e.Get(context.Background(), r.ID)
	fmt.Println(j.State, "for", time.Until(j.Due).Round(time.Hour))
	// Output: waiting for 1h0m0s
}
