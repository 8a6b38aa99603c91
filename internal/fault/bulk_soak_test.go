//go:build soak

package fault

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

// Ping is a job that measures how long it waited.
type Ping struct{ Sent time.Time }

// Kind names it.
func (Ping) Kind() string { return "ping" }

// TestSoak_J25_BulkRetryLeavesRunnersUndisturbed retries 200,000 dead jobs, 4,000 a second, in processes of which one is
// killed. Each is retried once, and those who work meanwhile hardly notice.
func TestSoak_J25_BulkRetryLeavesRunnersUndisturbed(t *testing.T) {
	for name, on := range map[string]func(*testing.T) *ground{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			const jobs = 200_000
			g := on(t)
			g.dead(jobs)
			var mu sync.Mutex
			var waits []time.Duration
			pawl.Handle(g.Engine, func(_ context.Context, j *pawl.Job[Ping]) error {
				mu.Lock()
				defer mu.Unlock()
				waits = append(waits, time.Since(j.Args.Sent))
				return nil
			})
			ctx, stop := context.WithCancel(pawl.As(t.Context(), "ann", "the deploy is mended"))
			ended := make(chan error, 1)
			go func() { ended <- g.Run(ctx) }()
			// late is the wait that 19 of 20 jobs stay below, and 99 of 100, of those sent until something has happened.
			late := func(until <-chan struct{}) (most, nearlyAll time.Duration) {
				tick := time.NewTicker(20 * time.Millisecond)
				defer tick.Stop()
				for over := false; !over; {
					select {
					case <-until:
						over = true
					case <-tick.C:
						if _, err := g.Enqueue(ctx, Ping{time.Now()}); err != nil {
							t.Error(err)
							over = true
						}
					}
				}
				mu.Lock()
				defer mu.Unlock()
				slices.Sort(waits)
				most, nearlyAll = waits[len(waits)*19/20], waits[len(waits)*99/100]
				waits = nil
				return most, nearlyAll
			}
			quiet := make(chan struct{})
			time.AfterFunc(10*time.Second, func() { close(quiet) })
			mostAlone, alone := late(quiet)

			f := newFleet(t, g.address)
			first := f.start("bulker")
			f.hear(first, "idle")
			begin := time.Now()
			op, err := g.Bulk(ctx, pawl.BulkRetry(deadOnes), pawl.Pace(4_000))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			var o pawl.Operation
			go func() {
				defer close(done)
				f.hear(first, "page")
				f.kill(first)
				if o, err = g.WaitOperation(ctx, op.ID); err != nil {
					t.Error(err)
				}
			}()
			mostBeside, beside := late(done)
			took := time.Since(begin)
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			t.Logf("%d jobs in %v; 19 of 20 other jobs waited at most %v beside it, %v without; 99 of 100 %v, %v without",
				jobs, took, mostBeside, mostAlone, beside, alone)
			if took < jobs/4_000*time.Second*9/10 {
				t.Errorf("it took %v: faster than its pace", took)
			}
			if beside > max(3*alone, 250*time.Millisecond) {
				t.Errorf("99 of 100 other jobs waited up to %v, %v without the operation", beside, alone)
			}
			g.expectRetriedOnce(o, jobs)
		})
	}
}
