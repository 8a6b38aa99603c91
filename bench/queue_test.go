package main

import (
	"sync"
	"testing"
	"time"
)

// Every system that needs no server does what the works take for granted: each job runs, and what is left counts down
// to nothing. A peer that lost jobs or counted them wrong would win every race.
func TestSystems_RunEveryJobOnce(t *testing.T) {
	const jobs = 300
	for name, open := range map[string]opener{
		pawlName: pawlSQLite, "river": riverSQLite, "goqite": openGoqite, "backlite": openBacklite,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			at := place{Dir: t.TempDir()}
			if err := fill(open, jobs-1)(ctx, at); err != nil {
				t.Fatal(err)
			}
			q, err := open(ctx, at)
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Enqueue(ctx, newPayload(jobs-1)); err != nil {
				t.Fatal(err)
			}
			if left, err := q.Left(ctx); err != nil || left != jobs {
				t.Fatalf("%d jobs, %v; want %d", left, err, jobs)
			}
			var mu sync.Mutex
			ran := make(map[int64]int)
			all := make(chan struct{})
			stop, err := q.Work(ctx, 10, func(p payload) {
				mu.Lock()
				defer mu.Unlock()
				if ran[p.Seq]++; len(ran) == jobs && ran[p.Seq] == 1 {
					close(all)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if left, err := await(ctx, q, all, 5*time.Minute); err != nil || left != 0 {
				t.Fatalf("%d jobs left, %v; want 0", left, err)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			for seq, times := range ran {
				if times != 1 {
					t.Errorf("job %d ran %d times", seq, times)
				}
			}
		})
	}
}
