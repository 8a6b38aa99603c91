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

func seconds(values ...float64) []time.Duration {
	var all []time.Duration
	for _, v := range values {
		all = append(all, time.Duration(v*float64(time.Second)))
	}
	return all
}

func TestS2_FirstTickIsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := newTrace[int]()
		start(t, supervise.Every("tick", time.Hour, func(context.Context) error { starts.add(0); return nil }))
		synctest.Wait() // no virtual time passes
		if _, at := starts.all(); !slices.Equal(at, seconds(0)) {
			t.Errorf("runs at %v, want one at 0s", at)
		}
	})
}

func TestS2_StartJitterDelaysOnlyTheFirstTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		firsts := make(map[time.Duration]bool)
		for range 20 {
			starts := newTrace[int]()
			tree := start(t, supervise.Every("tick", 10*time.Second, func(context.Context) error { starts.add(0); return nil },
				supervise.StartJitter(4*time.Second)))
			time.Sleep(4*time.Second + 10*time.Second)
			synctest.Wait()
			mustStop(t, tree)
			_, at := starts.all()
			if len(at) != 2 || at[0] >= 4*time.Second || at[1]-at[0] != 10*time.Second {
				t.Fatalf("runs at %v, want one within 4s and the next 10s later", at)
			}
			firsts[at[0]] = true
		}
		if len(firsts) < 2 {
			t.Errorf("20 trees had the same jitter: %v", firsts)
		}
	})
}

func TestS2_LateTickIsDelayedNeverBursted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := newTrace[int]()
		runs := 0
		start(t, supervise.Every("tick", 10*time.Second, func(context.Context) error {
			starts.add(0)
			if runs++; runs == 2 {
				time.Sleep(25 * time.Second)
			}
			return nil
		}))
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if _, at := starts.all(); !slices.Equal(at, seconds(0, 10, 35, 45, 55)) {
			t.Errorf("runs at %v, want 0s 10s 35s 45s 55s", at)
		}
	})
}

func TestS2_IntervalIsFromStartToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := newTrace[int]()
		start(t, supervise.Every("tick", 10*time.Second, func(context.Context) error {
			starts.add(0)
			time.Sleep(3 * time.Second)
			return nil
		}))
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if _, at := starts.all(); !slices.Equal(at, seconds(0, 10, 20, 30)) {
			t.Errorf("runs at %v, want 0s 10s 20s 30s", at)
		}
	})
}

func TestS2_IntervalFloorIs100ms(t *testing.T) {
	_, err := supervise.New(supervise.Config{Services: []supervise.Service{supervise.Every("fast", 99*time.Millisecond, nothing)}})
	if err == nil || !strings.Contains(err.Error(), `"fast"`) || !strings.Contains(err.Error(), "99ms") || !strings.Contains(err.Error(), "100ms") {
		t.Errorf("99ms: %v, want an error with the service, the value and the floor", err)
	}
	build(t, supervise.Config{Services: []supervise.Service{supervise.Every("fast", 100*time.Millisecond, nothing)}})
	build(t, supervise.Config{Floor: time.Millisecond, Services: []supervise.Service{supervise.Every("fast", time.Millisecond, nothing)}})
}

func TestS2_ErrorIsLoggedWithServiceAndShardAndTheLoopGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logbook
		tree := startConfig(t, supervise.Config{Logger: log.logger(), Services: []supervise.Service{
			supervise.Group("keeper",
				supervise.Every("plain", time.Second, func(context.Context) error { return errors.New("plain boom") }),
				supervise.EveryShard("sharded", time.Second, []string{"red", "blue"}, func(_ context.Context, shard string) error {
					if shard == "blue" {
						return errors.New("blue boom")
					}
					return nil
				}),
			),
		}})
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		seen := make(map[string]int)
		for _, record := range log.records(t, "service failed") {
			shard, _ := record["shard"].(string)
			seen[record["service"].(string)+"|"+shard+"|"+record["error"].(string)]++
		}
		if len(seen) != 2 || seen["keeper/plain||plain boom"] != 2 || seen["keeper/sharded|blue|blue boom"] != 2 {
			t.Errorf("logged %v", seen)
		}
		for _, name := range []string{"keeper/plain", "keeper/sharded"} {
			if s := status(t, tree, name); s.Cycles != 2 || s.Errors != 2 || s.Restarts != 0 {
				t.Errorf("%s: %+v, want 2 cycles, 2 errors and no restart", name, s)
			}
		}
	})
}

func TestS2_RunsNeverOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active, most, runs atomic.Int32
		work := func(context.Context) error {
			now := active.Add(1)
			if now > most.Load() {
				most.Store(now)
			}
			runs.Add(1)
			time.Sleep(1500 * time.Millisecond) // longer than the interval
			active.Add(-1)
			return nil
		}
		tree := start(t,
			supervise.Every("plain", time.Second, work),
		)
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() {
				for range 100 {
					if err := tree.Wake("plain"); err != nil {
						t.Error(err)
					}
					time.Sleep(70 * time.Millisecond)
				}
			})
		}
		callers.Wait()
		if most.Load() != 1 || runs.Load() < 4 {
			t.Errorf("%d runs, up to %d at once, want several and never two at once", runs.Load(), most.Load())
		}
	})
}

func TestS2_ShardsOfACycleRunOneAfterTheOtherInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := newTrace[string]()
		start(t, supervise.EveryShard("tick", time.Minute, []string{"c", "a", "b"}, func(_ context.Context, shard string) error {
			steps.add(shard + " begins")
			time.Sleep(time.Second)
			steps.add(shard + " ends")
			return nil
		}))
		time.Sleep(10 * time.Second)
		want := []string{"c begins", "c ends", "a begins", "a ends", "b begins", "b ends"}
		if got, _ := steps.all(); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestS2_WakeRunsNowAndMovesTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := newTrace[int]()
		tree := start(t, supervise.Every("tick", 10*time.Second, func(context.Context) error { starts.add(0); return nil }))
		time.Sleep(4 * time.Second)
		if err := tree.Wake("tick"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(21 * time.Second)
		synctest.Wait()
		if _, at := starts.all(); !slices.Equal(at, seconds(0, 4, 14, 24)) {
			t.Errorf("runs at %v, want 0s 4s 14s 24s", at)
		}
	})
}

func TestS2_WakesDuringARunAreOneMoreRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := newTrace[int]()
		tree := start(t, supervise.Every("tick", time.Minute, func(context.Context) error {
			starts.add(0)
			time.Sleep(5 * time.Second)
			return nil
		}))
		synctest.Wait()
		for range 7 {
			if err := tree.Wake("tick"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Second)
		if _, at := starts.all(); !slices.Equal(at, seconds(0, 5)) {
			t.Errorf("runs at %v, want 0s 5s", at)
		}
	})
}

func TestS2_WakeBeforeStartIsAnsweredByTheFirstRun(t *testing.T) {
	for _, jitter := range []time.Duration{0, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			starts := newTrace[int]()
			tree := build(t, supervise.Config{Services: []supervise.Service{
				supervise.Every("tick", time.Minute, func(context.Context) error { starts.add(0); return nil }, supervise.StartJitter(jitter)),
			}})
			if err := tree.Wake("tick"); err != nil {
				t.Fatal(err)
			}
			if err := tree.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if _, at := starts.all(); !slices.Equal(at, seconds(0)) {
				t.Errorf("jitter %v: runs at %v, want exactly one, at 0s", jitter, at)
			}
		})
	}
}

func TestS2_WakeOfWhatIsNoLiveTickIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t, supervise.Loop("loop", untilStopped), supervise.Every("tick", time.Second, nothing))
		for _, name := range []string{"loop", "unknown"} {
			if err := tree.Wake(name); !errors.Is(err, supervise.ErrNoSuchTick) || !strings.Contains(err.Error(), name) {
				t.Errorf("Wake(%q) = %v, want ErrNoSuchTick with the name", name, err)
			}
		}
		mustStop(t, tree)
		if err := tree.Wake("tick"); !errors.Is(err, supervise.ErrNoSuchTick) {
			t.Errorf("Wake after Stop = %v, want ErrNoSuchTick", err)
		}
	})
}

func TestS2_NextInChoosesTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := newTrace[int]()
		answers := []error{
			supervise.NextIn(0),               // at once, counted from the end of the run: 1s
			supervise.NextIn(-time.Hour),      // the same: 2s
			supervise.NextIn(time.Minute),     // later than the interval: 3s + 60s
			errors.New("no wish in an error"), // back to the interval: 63s + 10s
			nil,
		}
		tree := start(t, supervise.Every("tick", 10*time.Second, func(context.Context) error {
			starts.add(0)
			time.Sleep(time.Second)
			answer := answers[0]
			answers = append(answers[1:], nil)
			return answer
		}))
		time.Sleep(75 * time.Second)
		if _, at := starts.all(); !slices.Equal(at, seconds(0, 1, 2, 63, 73)) {
			t.Errorf("runs at %v, want 0s 1s 2s 63s 73s", at)
		}
		if got := status(t, tree, "tick").Errors; got != 1 {
			t.Errorf("errors = %d, want 1: NextIn is a success", got)
		}
	})
}

func TestS2_NextInThatIsJoinedToAnErrorHidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t, supervise.Every("tick", 10*time.Second, func(context.Context) error {
			return errors.Join(errors.New("half of it failed"), supervise.NextIn(0))
		}))
		time.Sleep(5 * time.Second)
		if s := status(t, tree, "tick"); s.Errors != 1 || s.Cycles != 1 {
			t.Errorf("errors %d, cycles %d, want 1 and 1", s.Errors, s.Cycles)
		}
	})
}

func TestS2_SoonestWishOfTheShardsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := newTrace[int]()
		wishes := map[string][]error{ // by cycle
			"a": {supervise.NextIn(time.Minute), supervise.NextIn(time.Minute), supervise.NextIn(time.Minute), nil},
			"b": {supervise.NextIn(2 * time.Second), nil, supervise.NextIn(20 * time.Second), nil},
		}
		cycle := -1
		start(t, supervise.EveryShard("tick", 10*time.Second, []string{"a", "b"}, func(_ context.Context, shard string) error {
			if shard == "a" {
				starts.add(0)
				cycle++
			}
			return wishes[shard][cycle]
		}))
		time.Sleep(40 * time.Second)
		// 2s: b's wish. 10s later: b has none, which wishes for the interval. 20s later: the soonest of 60s and 20s.
		if _, at := starts.all(); !slices.Equal(at, seconds(0, 2, 12, 32)) {
			t.Errorf("cycles at %v, want 0s 2s 12s 32s", at)
		}
	})
}

func TestS2_TimeoutEndsARunAndCountsAsItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := newTrace[string]()
		tree := start(t, supervise.EveryShard("tick", time.Minute, []string{"hung", "fine"}, func(ctx context.Context, shard string) error {
			if shard == "hung" {
				<-ctx.Done()
				return ctx.Err()
			}
			steps.add(shard)
			return nil
		}, supervise.Timeout(3*time.Second)))
		time.Sleep(10 * time.Second)
		if _, at := steps.all(); !slices.Equal(at, seconds(3)) {
			t.Errorf("the other shard ran at %v, want 3s", at)
		}
		if s := status(t, tree, "tick"); s.Errors != 1 || s.LastError != context.DeadlineExceeded.Error() {
			t.Errorf("errors %d, last %q", s.Errors, s.LastError)
		}
	})
}

// A run that gives its own context's end as its error, though nobody asked it to stop, has failed.
func TestS2_CancelledOfItsOwnMakingIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t, supervise.Every("tick", time.Minute, func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx.Err()
		}, supervise.Timeout(time.Second)))
		synctest.Wait()
		if got := status(t, tree, "tick").Errors; got != 1 {
			t.Errorf("errors = %d, want 1", got)
		}
	})
}
