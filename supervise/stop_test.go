package supervise_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/supervise"
)

func TestS5_StopIsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends atomic.Int32
		tree := start(t, supervise.Loop("loop", func(ctx context.Context) error { <-ctx.Done(); ends.Add(1); return nil }))
		synctest.Wait()
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() { mustStop(t, tree) })
		}
		callers.Wait()
		mustStop(t, tree)
		if ends.Load() != 1 {
			t.Errorf("the loop ended %d times", ends.Load())
		}
		if err := wait(t, tree); err != nil {
			t.Errorf("Wait = %v", err)
		}
	})
}

func TestS5_StopBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Bool
		run := func(context.Context) error { ran.Store(true); return nil }
		tree := build(t, supervise.Config{Services: []supervise.Service{
			supervise.Once("once", run), supervise.Loop("loop", run), supervise.Every("every", time.Second, run),
		}})
		mustStop(t, tree)
		if err := tree.Start(t.Context()); !errors.Is(err, supervise.ErrStopped) {
			t.Errorf("Start after Stop = %v, want ErrStopped", err)
		}
		if err := wait(t, tree); err != nil {
			t.Errorf("Wait = %v, want nil", err)
		}
		time.Sleep(time.Minute)
		if ran.Load() {
			t.Error("a service ran after Stop")
		}
		for _, s := range tree.Snapshot() {
			if s.State != supervise.StateStopped {
				t.Errorf("%s is %s, want stopped", s.Name, s.State)
			}
		}
	})
}

func TestS5_StopDuringStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var after atomic.Bool
		tree := build(t, supervise.Config{Services: []supervise.Service{
			supervise.Loop("before", untilStopped),
			supervise.Once("slow", untilStopped),
			supervise.Loop("after", func(context.Context) error { after.Store(true); return nil }),
		}})
		result := make(chan error, 1)
		go func() { result <- tree.Start(t.Context()) }()
		synctest.Wait() // Start now waits for the Once
		mustStop(t, tree)
		if err := <-result; !errors.Is(err, supervise.ErrStopped) {
			t.Errorf("Start = %v, want ErrStopped", err)
		}
		wantState(t, tree, "before", supervise.StateStopped)
		wantState(t, tree, "slow", supervise.StateStopped)
		if after.Load() {
			t.Error("a service was started after the stop")
		}
		if err := wait(t, tree); err != nil {
			t.Errorf("Wait = %v", err)
		}
	})
}

// A Once that was cut short has not succeeded, also when nothing comes after it that Start could refuse.
func TestS5_StopDuringTheLastOnceIsNoSuccessOfStart(t *testing.T) {
	for name, once := range map[string]func(context.Context) error{
		"returns the context's error": untilStopped,
		"returns its own error":       func(ctx context.Context) error { <-ctx.Done(); return errBoom },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree := build(t, supervise.Config{Services: []supervise.Service{supervise.Once("migrate", once)}})
				result := make(chan error, 1)
				go func() { result <- tree.Start(t.Context()) }()
				synctest.Wait() // Start now waits for the Once
				mustStop(t, tree)
				if err := <-result; !errors.Is(err, supervise.ErrStopped) {
					t.Errorf("Start = %v, want ErrStopped", err)
				}
				wantState(t, tree, "migrate", supervise.StateStopped)
			})
		})
	}
}

// Not: tasks registered in the background that an immediate stop misses.
func TestS5_ImmediateStopMissesNothing(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var running, begun atomic.Int32
			loop := func(ctx context.Context) error {
				begun.Add(1)
				running.Add(1)
				defer running.Add(-1)
				return untilStopped(ctx)
			}
			var services []supervise.Service
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				services = append(services, supervise.Loop(name, loop), supervise.Every("tick "+name, time.Second, loop))
			}
			tree := build(t, supervise.Config{Services: services})
			if err := tree.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustStop(t, tree)
			if n := running.Load(); n != 0 {
				t.Errorf("%d functions run after Stop has returned", n)
			}
			at := begun.Load()
			time.Sleep(time.Minute)
			if n := begun.Load(); n != at {
				t.Errorf("%d functions began after Stop had returned", n-at)
			}
		})
	}
}

func TestS5_StopIsBoundedByTheGracePeriodAndNamesWhatDidNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := func(context.Context) error { <-release; return nil }
		tree := build(t, supervise.Config{Grace: 20 * time.Second, Services: []supervise.Service{
			supervise.Loop("good", untilStopped),
			supervise.Group("bad", supervise.Loop("loop", deaf), supervise.Every("tick", time.Second, deaf)),
			supervise.Loop("also good", untilStopped),
		}})
		if err := tree.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := time.Now()
		stuck := tree.Stop(context.Background())
		if want := []string{"bad/loop", "bad/tick"}; !slices.Equal(stuck, want) {
			t.Errorf("Stop = %v, want %v", stuck, want)
		}
		if took := time.Since(before); took != 20*time.Second {
			t.Errorf("Stop took %v, want 20s", took)
		}
		wantState(t, tree, "bad/loop", supervise.StateStopping)
		wantState(t, tree, "good", supervise.StateStopped)
		if err := wait(t, tree); !errors.Is(err, supervise.ErrStuck) || !strings.Contains(err.Error(), "bad/loop, bad/tick") {
			t.Errorf("Wait = %v, want ErrStuck with the names", err)
		}
		close(release)
		mustStop(t, tree) // a later Stop answers for its own moment
		if err := wait(t, tree); err != nil {
			t.Errorf("Wait after all = %v, want nil", err)
		}
	})
}

func TestS5_StopIsBoundedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context) error { <-ctx.Done(); time.Sleep(5 * time.Second); return nil }
		tree := start(t, supervise.Loop("slow", slow))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		before := time.Now()
		if stuck := tree.Stop(ctx); !slices.Equal(stuck, []string{"slow"}) {
			t.Errorf("Stop = %v, want slow", stuck)
		}
		if took := time.Since(before); took != 2*time.Second {
			t.Errorf("Stop took %v, want 2s", took)
		}
		mustStop(t, tree)
		if took := time.Since(before); took != 5*time.Second {
			t.Errorf("both took %v, want 5s", took)
		}
	})
}

func TestS5_OneStuckServiceDoesNotUseUpTheTimeOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		drain := func(ctx context.Context) error { <-ctx.Done(); time.Sleep(2 * time.Second); return nil }
		tree := build(t, supervise.Config{Grace: 20 * time.Second, Services: []supervise.Service{
			supervise.Loop("a", drain), supervise.Loop("b", drain),
			supervise.Loop("deaf", func(context.Context) error { <-release; return nil }),
		}})
		if err := tree.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if stuck := tree.Stop(t.Context()); !slices.Equal(stuck, []string{"deaf"}) {
			t.Errorf("Stop = %v, want deaf only", stuck)
		}
		close(release)
		mustStop(t, tree)
	})
}

func TestS5_StuckOnceHoldsNeitherStopNorStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		tree := build(t, supervise.Config{Services: []supervise.Service{
			supervise.Once("deaf", func(context.Context) error { <-release; return nil }),
		}})
		result := make(chan error, 1)
		go func() { result <- tree.Start(t.Context()) }()
		synctest.Wait()
		if stuck := tree.Stop(t.Context()); !slices.Equal(stuck, []string{"deaf"}) {
			t.Errorf("Stop = %v, want deaf", stuck)
		}
		if err := <-result; !errors.Is(err, supervise.ErrStopped) || !errors.Is(err, supervise.ErrStuck) {
			t.Errorf("Start = %v, want ErrStopped and ErrStuck", err)
		}
		close(release)
		mustStop(t, tree)
	})
}

func TestS5_StartWithAnEndedContextStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errBoom)
		tree := build(t, supervise.Config{Services: []supervise.Service{supervise.Loop("loop", untilStopped)}})
		if err := tree.Start(ctx); !errors.Is(err, supervise.ErrStopped) || !errors.Is(err, errBoom) {
			t.Errorf("Start = %v, want ErrStopped and the cause", err)
		}
		if s := status(t, tree, "loop"); s.State != supervise.StateStopped || s.Cycles != 0 {
			t.Errorf("loop is %s after %d runs", s.State, s.Cycles)
		}
	})
}

func TestS5_EndOfStartsContextThatLeavesSomethingRunningIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logbook
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		tree := build(t, supervise.Config{Logger: log.logger(), Grace: time.Second, Services: []supervise.Service{
			supervise.Loop("deaf", func(context.Context) error { <-release; return nil }),
		}})
		if err := tree.Start(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := wait(t, tree); !errors.Is(err, supervise.ErrStuck) {
			t.Errorf("Wait = %v, want ErrStuck", err)
		}
		synctest.Wait()
		if records := log.records(t, "services did not stop in time"); len(records) != 1 {
			t.Errorf("logged %v, want one record", records)
		}
		close(release)
		mustStop(t, tree)
	})
}

func TestS5_StopInTheMiddleOfACycleRunsNoFurtherShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := newTrace[string]()
		tree := start(t, supervise.EveryShard("tick", time.Minute, []string{"a", "b", "c"}, func(ctx context.Context, shard string) error {
			ran.add(shard)
			if shard == "b" {
				return untilStopped(ctx)
			}
			return nil
		}))
		synctest.Wait()
		mustStop(t, tree)
		if got, _ := ran.all(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("shards ran: %v, want a and b", got)
		}
		if s := status(t, tree, "tick"); s.Errors != 0 || !s.LastSuccess.IsZero() {
			t.Errorf("%+v, want neither an error nor a success of the interrupted cycle", s)
		}
	})
}

func TestS5_ErrorWhileStoppingIsCountedAndStillAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t, supervise.Loop("loop", func(ctx context.Context) error { <-ctx.Done(); return errBoom }))
		synctest.Wait()
		mustStop(t, tree)
		if s := status(t, tree, "loop"); s.State != supervise.StateStopped || s.Errors != 1 || s.LastError != "boom" || s.Restarts != 0 {
			t.Errorf("%+v, want stopped with one error and no restart", s)
		}
	})
}

func TestS5_OnceThatSucceedsWhileStoppingIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := build(t, supervise.Config{Services: []supervise.Service{
			supervise.Once("once", func(ctx context.Context) error { <-ctx.Done(); return nil }),
		}})
		result := make(chan error, 1)
		go func() { result <- tree.Start(t.Context()) }()
		synctest.Wait()
		mustStop(t, tree)
		wantState(t, tree, "once", supervise.StateDone)
		if err := <-result; err != nil && !errors.Is(err, supervise.ErrStopped) {
			t.Errorf("Start = %v", err)
		}
	})
}
