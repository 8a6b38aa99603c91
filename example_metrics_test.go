package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl"
)

// What jobs came to, of every process, in the last hour.
func ExampleEngine_Metrics() {
	e := newEngine()
	defer e.Close()
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	var ran atomic.Int32
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		if ran.Add(1) == 3 {
			stop()
		}
		return nil
	})
	for user := range int64(3) {
		if _, err := e.Enqueue(ctx, Welcome{user + 1}); err != nil {
			log.Fatal(err)
		}
	}
	if err := e.Run(ctx); err != nil { // hands over what it measured when it stops
		log.Fatal(err)
	}

	metrics, err := e.Metrics(context.Background(), pawl.MetricQuery{Queue: "default", To: time.Now().Add(time.Minute)})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range metrics.Series {
		total := s.Total()
		fmt.Println(s.Queue, s.Kind, "done:", total.Count(pawl.MetricDone))
		fmt.Println("99 of 100 took at most an hour:", total.RunTime.Quantile(0.99) < time.Hour)
	}
	// Output:
	// default welcome done: 3
	// 99 of 100 took at most an hour: true
}

// Which failures are alike, however many jobs had them.
func ExampleEngine_FailureGroups() {
	e := newEngine()
	defer e.Close()
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	var ran atomic.Int32
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		if ran.Add(1) == 3 {
			defer stop()
		}
		if j.Args.UserID == 3 {
			return errors.New("mailbox full")
		}
		return pawl.Dead(fmt.Errorf("no user %d", j.Args.UserID))
	})
	for user := range int64(3) {
		if _, err := e.Enqueue(ctx, Welcome{user + 1}, pawl.Priority(int(user)+1)); err != nil {
			log.Fatal(err)
		}
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}

	groups, err := e.FailureGroups(context.Background(), pawl.FailureQuery{To: time.Now().Add(time.Minute)})
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range groups {
		fmt.Printf("%s: failed %d times with errors like %q, %d dead\n", g.Kind, g.Failed, strings.Trim(g.Message, " 12"), g.Dead)
	}
	// Output:
	// welcome: failed 2 times with errors like "no user", 2 dead
	// welcome: failed 1 times with errors like "mailbox full", 0 dead
}
