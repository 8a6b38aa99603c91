package supervise_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/supervise"
)

// everyKind is a tree with each kind of service in good and bad health; active counts the
// functions that run.
func everyKind(active *atomic.Int32) []supervise.Service {
	count := func(run func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			active.Add(1)
			defer active.Add(-1)
			return run(ctx)
		}
	}
	fail := func(context.Context) error { return errBoom }
	crash := func(context.Context) error { panic(errBoom) }
	shard := func(ctx context.Context, name string) error {
		if name == "bad" {
			return count(fail)(ctx)
		}
		return count(nothing)(ctx)
	}
	return []supervise.Service{
		supervise.Once("once", count(nothing)),
		supervise.Once("slow once", count(func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Millisecond):
				return nil
			}
		})),
		supervise.Loop("loop", count(untilStopped)),
		supervise.Loop("short loop", count(nothing)),
		supervise.Loop("failing loop", count(fail)),
		supervise.Group("ticks",
			supervise.Every("every", 100*time.Millisecond, count(nothing)),
			supervise.Every("jitter", 100*time.Millisecond, count(nothing), supervise.StartJitter(time.Second)),
			supervise.Every("draining", 100*time.Millisecond, count(func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			})),
			supervise.Every("panicking", 100*time.Millisecond, count(crash)),
			supervise.Every("not mine", 100*time.Millisecond, count(nothing), supervise.OnlyIfMine(newLease(false))),
			supervise.EveryShard("shards", 100*time.Millisecond, []string{"good", "bad"}, shard),
		),
		supervise.Loop("last", count(untilStopped)),
	}
}

// TestS5_StressOfStartAndStop is 10 goroutines of 50 rounds each. A round takes a new tree of every kind of
// service through one of the orders in which Start and Stop can meet.
func TestS5_StressOfStartAndStop(t *testing.T) {
	const goroutines, rounds = 10, 50
	orders := []struct {
		name string
		run  func(start, stop func())
	}{
		{"start, stop", func(start, stop func()) { start(); stop() }},
		{"stop before start", func(start, stop func()) { stop(); start(); stop() }},
		{"both at once", func(start, stop func()) { together(start, stop); stop() }},
		{"many at once", func(start, stop func()) { together(start, stop, start, stop, stop); stop() }},
		{"start, pause, stops", func(start, stop func()) { start(); time.Sleep(rand.N(2 * time.Second)); together(stop, stop) }},
		{"stop within start", func(start, stop func()) {
			together(start, func() { time.Sleep(rand.N(2 * time.Millisecond)); stop() })
			stop()
		}},
	}
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		for g := range goroutines {
			group.Go(func() {
				for round := range rounds {
					order := orders[(g+round)%len(orders)]
					var active atomic.Int32
					tree := build(t, supervise.Config{Services: everyKind(&active)})
					start := func() {
						err := tree.Start(t.Context())
						if err != nil && !errors.Is(err, supervise.ErrStarted) && !errors.Is(err, supervise.ErrStopped) {
							t.Errorf("%s: Start = %v", order.name, err)
						}
					}
					order.run(start, func() { mustStop(t, tree) })
					if n := active.Load(); n != 0 {
						t.Errorf("%s: %d functions run after Stop", order.name, n)
					}
					// The panicking tick of a tree that was stopped in mid-panic is failed, by S4.
					if err := wait(t, tree); err != nil && !isOnlyPanic(err) {
						t.Errorf("%s: Wait = %v", order.name, err)
					}
					for _, s := range tree.Snapshot() {
						if s.State != supervise.StateStopped && s.State != supervise.StateDone && s.State != supervise.StateFailed {
							t.Errorf("%s: %s is %s", order.name, s.Name, s.State)
						}
					}
				}
			})
		}
		group.Wait()
	})
}

// TestS5_StressOfOneTree lets 10 goroutines of 50 rounds each call every method of the same tree.
func TestS5_StressOfOneTree(t *testing.T) {
	const goroutines, rounds = 10, 50
	synctest.Test(t, func(t *testing.T) {
		var active, starts atomic.Int32
		tree := build(t, supervise.Config{Services: everyKind(&active)})
		var group sync.WaitGroup
		for g := range goroutines {
			group.Go(func() {
				for round := range rounds {
					if err := tree.Start(t.Context()); err == nil {
						starts.Add(1)
					}
					_ = tree.Wake("ticks/every") // ErrNoSuchTick once it is stopped
					if len(tree.Snapshot()) != 12 {
						t.Error("snapshot is not whole")
					}
					time.Sleep(rand.N(20 * time.Millisecond))
					if g%2 == 1 && round > rounds/2 {
						mustStop(t, tree)
					}
				}
			})
		}
		group.Wait()
		mustStop(t, tree)
		if n := starts.Load(); n != 1 {
			t.Errorf("%d Starts succeeded, want 1", n)
		}
		if n := active.Load(); n != 0 {
			t.Errorf("%d functions run after Stop", n)
		}
	})
}

func together(all ...func()) {
	var group sync.WaitGroup
	for _, f := range all {
		group.Go(f)
	}
	group.Wait()
}

func isOnlyPanic(err error) bool {
	var panicked *supervise.PanicError
	return errors.As(err, &panicked) && !errors.Is(err, supervise.ErrGaveUp) && !errors.Is(err, supervise.ErrStuck)
}
