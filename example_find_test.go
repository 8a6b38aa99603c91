package pawl_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pawlwork/pawl"
)

// Every cancelled job, the last one first, page by page.
func ExampleEngine_List() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()
	for user := range int64(3) {
		r, err := e.Enqueue(ctx, Welcome{user})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := e.Cancel(ctx, r.ID); err != nil {
			log.Fatal(err)
		}
	}

	cancelled := pawl.Filter{States: []pawl.State{pawl.StateCancelled}}
	page := pawl.Page{Limit: 2, Order: pawl.ByFinish}
	for {
		listed, err := e.List(ctx, cancelled, page)
		if err != nil {
			log.Fatal(err)
		}
		for _, j := range listed.Jobs {
			fmt.Println(j.State, string(j.Args))
		}
		if !listed.More { // the only reason to end: a page may be short, or empty even
			break
		}
		page.After = listed.Next
	}
	// Output:
	// cancelled {"user_id":2}
	// cancelled {"user_id":1}
	// cancelled {"user_id":0}
}

// A count ends at a bound, and says so.
func ExampleEngine_Count() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()
	for user := range int64(3) {
		if _, err := e.Enqueue(ctx, Welcome{user}); err != nil {
			log.Fatal(err)
		}
	}

	waiting := pawl.Filter{States: []pawl.State{pawl.StateWaiting}}
	for _, cap := range []int{0, 2} {
		n, err := e.Count(ctx, waiting, cap)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(n.Jobs, n.More)
	}
	// Output:
	// 3 false
	// 2 true
}

// How every queue stands, in one read.
func ExampleEngine_Queues() {
	ctx := context.Background()
	e := newEngine()
	defer e.Close()
	if _, err := e.Enqueue(ctx, Welcome{42}, pawl.Queue("mail")); err != nil {
		log.Fatal(err)
	}
	e.Queue("video").Pause(ctx)

	queues, err := e.Queues(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range queues {
		fmt.Println(q.Name, "ready:", q.Ready.Jobs, "workers:", q.Workers, "paused:", q.Pause != nil)
	}
	// Output:
	// mail ready: 1 workers: 0 paused: false
	// video ready: 0 workers: 0 paused: true
}
