package supervise_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/supervise"
)

func TestS1_StartedInOrderStoppedInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := newTrace[string]()
		loop := func(name string) supervise.Service {
			return supervise.Loop(name, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second) // slow enough for the others to overtake if they were asked too early
				ends.add(name)
				return nil
			})
		}
		var tree *supervise.Supervisor
		// look is a Once that notes what had been started when its turn came.
		var started []string
		look := supervise.Once("look", func(context.Context) error {
			for _, s := range tree.Snapshot() {
				if s.State != supervise.StateNew {
					started = append(started, s.Name)
				}
			}
			return nil
		})
		tree = build(t, supervise.Config{Services: []supervise.Service{
			loop("a"),
			supervise.Group("g", loop("b"), supervise.Group("h", loop("c"), look), loop("d")),
			loop("e"),
		}})
		if err := tree.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"a", "g/b", "g/h/c", "g/h/look"}; !slices.Equal(started, want) {
			t.Errorf("started before g/h/look ended: %v, want %v", started, want)
		}
		synctest.Wait()
		var names []string
		for _, s := range tree.Snapshot() {
			names = append(names, s.Name)
		}
		if want := []string{"a", "g/b", "g/h/c", "g/h/look", "g/d", "e"}; !slices.Equal(names, want) {
			t.Errorf("order is %v, want %v", names, want)
		}
		mustStop(t, tree)
		got, at := ends.all()
		if want := []string{"e", "d", "c", "b", "a"}; !slices.Equal(got, want) {
			t.Errorf("ended in order %v, want %v", got, want)
		}
		if want := []time.Duration{1e9, 2e9, 3e9, 4e9, 5e9}; !slices.Equal(at, want) {
			t.Errorf("ended at %v, want %v: each is asked after the one before has ended", at, want)
		}
	})
}

func TestS1_EachKindRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t,
			supervise.Once("once", nothing),
			supervise.Every("every", time.Second, nothing),
			supervise.EveryShard("shards", time.Second, []string{"x", "y"}, func(context.Context, string) error { return nil }),
			supervise.Loop("loop", untilStopped),
			supervise.Loop("short", nothing),
		)
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		wantState(t, tree, "once", supervise.StateDone)
		wantState(t, tree, "every", supervise.StateWaiting)
		wantState(t, tree, "shards", supervise.StateWaiting)
		wantState(t, tree, "loop", supervise.StateRunning)
		wantState(t, tree, "short", supervise.StateDone)
		for name, want := range map[string]uint64{"once": 1, "every": 3, "shards": 3, "loop": 1, "short": 1} {
			if got := status(t, tree, name).Cycles; got != want {
				t.Errorf("%s ran %d times, want %d", name, got, want)
			}
		}
		mustStop(t, tree)
		wantState(t, tree, "once", supervise.StateDone)
		wantState(t, tree, "every", supervise.StateStopped)
		wantState(t, tree, "loop", supervise.StateStopped)
		if err := wait(t, tree); err != nil {
			t.Errorf("Wait: %v", err)
		}
	})
}

func TestS1_StartWaitsForAOnceThatIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		connect := func(context.Context) error {
			if tries++; tries < 4 {
				return errors.New("no connection yet")
			}
			return nil
		}
		afterwards := 0
		tree := start(t,
			supervise.Once("connect", connect, supervise.Restart(supervise.Always{})),
			supervise.Once("serve", func(context.Context) error { afterwards = tries; return nil }),
		)
		if afterwards != 4 {
			t.Errorf("serve was started after %d tries of connect, want 4", afterwards)
		}
		if got := status(t, tree, "connect").Restarts; got != 3 {
			t.Errorf("restarts = %d, want 3", got)
		}
	})
}

func TestS1_FailedOnceStopsWhatWasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no such column")
		tree := build(t, supervise.Config{Services: []supervise.Service{
			supervise.Loop("before", untilStopped),
			supervise.Once("migrate", func(context.Context) error { return broken }),
			supervise.Loop("after", untilStopped),
		}})
		err := tree.Start(t.Context())
		if !errors.Is(err, broken) || !errors.Is(err, supervise.ErrGaveUp) {
			t.Errorf("Start = %v, want the error of migrate and ErrGaveUp", err)
		}
		wantState(t, tree, "before", supervise.StateStopped)
		wantState(t, tree, "migrate", supervise.StateFailed)
		wantState(t, tree, "after", supervise.StateStopped)
		if got := status(t, tree, "after").Cycles; got != 0 {
			t.Errorf("after ran %d times, want never", got)
		}
		if err := wait(t, tree); !errors.Is(err, broken) {
			t.Errorf("Wait = %v, want the error of migrate", err)
		}
	})
}

func TestS1_SecondStartIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t, supervise.Loop("loop", untilStopped))
		if err := tree.Start(t.Context()); !errors.Is(err, supervise.ErrStarted) {
			t.Errorf("second Start = %v, want ErrStarted", err)
		}
		synctest.Wait()
		wantState(t, tree, "loop", supervise.StateRunning)
	})
}

func TestS1_ServicesSeeTheValuesOfStartsContextButNotItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ends := newTrace[string]()
		loop := func(name string) supervise.Service {
			return supervise.Loop(name, func(ctx context.Context) error {
				<-ctx.Done()
				if ctx.Value(key{}) != "value" || context.Cause(ctx) != supervise.ErrStopped {
					t.Errorf("%s: value %v, cause %v", name, ctx.Value(key{}), context.Cause(ctx))
				}
				time.Sleep(time.Second)
				ends.add(name)
				return nil
			})
		}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		tree := build(t, supervise.Config{Services: []supervise.Service{loop("a"), loop("b")}})
		if err := tree.Start(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := wait(t, tree); err != nil {
			t.Errorf("Wait: %v", err)
		}
		// The end of the context stops in order too: b first, a once b has ended.
		if got, at := ends.all(); !slices.Equal(got, []string{"b", "a"}) || at[1]-at[0] != time.Second {
			t.Errorf("ended %v at %v, want b, then a a second later", got, at)
		}
	})
}

// hooked is a context that never ends and counts what waits for its end.
type hooked struct {
	context.Context
	done     chan struct{}
	attached atomic.Int32
}

func (h *hooked) Done() <-chan struct{} { return h.done }

func (h *hooked) AfterFunc(func()) (stop func() bool) {
	h.attached.Add(1)
	return sync.OnceValue(func() bool { h.attached.Add(-1); return true })
}

func TestS1_EndedTreeLetsGoOfStartsContext(t *testing.T) {
	endings := map[string]func(*testing.T, *supervise.Supervisor){
		"by itself": func(t *testing.T, tree *supervise.Supervisor) {
			if err := wait(t, tree); err != nil {
				t.Error(err)
			}
		},
		"by Stop": func(t *testing.T, tree *supervise.Supervisor) { mustStop(t, tree) },
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := &hooked{Context: context.Background(), done: make(chan struct{})}
				tree := build(t, supervise.Config{Services: []supervise.Service{
					supervise.Loop("loop", func(ctx context.Context) error {
						select {
						case <-ctx.Done():
						case <-time.After(time.Second):
						}
						return nil
					}),
				}})
				if err := tree.Start(ctx); err != nil {
					t.Fatal(err)
				}
				if n := ctx.attached.Load(); n != 1 {
					t.Errorf("%d attached while it runs, want 1", n)
				}
				end(t, tree)
				synctest.Wait()
				if n := ctx.attached.Load(); n != 0 {
					t.Errorf("%d still attached, want 0", n)
				}
			})
		})
	}
}
