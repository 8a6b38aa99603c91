package supervise_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/supervise"
)

func panicHere() { panic(errBoom) }

// panicking is every kind of service whose function panics.
func panicking(policy supervise.Policy) map[string]supervise.Service {
	run := func(context.Context) error { panicHere(); return nil }
	return map[string]supervise.Service{
		"loop":  supervise.Loop("s", run, supervise.Restart(policy)),
		"once":  supervise.Once("s", run, supervise.Restart(policy)),
		"every": supervise.Every("s", time.Second, run, supervise.Restart(policy)),
		"shard": supervise.EveryShard("s", time.Second, []string{"x"}, func(ctx context.Context, _ string) error { return run(ctx) }, supervise.Restart(policy)),
	}
}

func TestS4_PanicIsCaughtWithItsStackCountedAndHandledByThePolicy(t *testing.T) {
	for kind, service := range panicking(supervise.Bounded{Max: 2, Window: time.Hour}) {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logbook
				tree := build(t, supervise.Config{Logger: log.logger(), Services: []supervise.Service{service}})
				started := tree.Start(t.Context()) // an error if it is a Once
				err := wait(t, tree)
				var panicked *supervise.PanicError
				if !errors.As(err, &panicked) || !errors.Is(err, errBoom) || !errors.Is(err, supervise.ErrGaveUp) {
					t.Fatalf("Wait = %v, want a PanicError, its value and ErrGaveUp", err)
				}
				if (kind == "once") != (started != nil) {
					t.Errorf("Start = %v", started)
				}
				if !strings.Contains(string(panicked.Stack), "panicHere") {
					t.Errorf("the stack does not show where it panicked:\n%s", panicked.Stack)
				}
				if s := status(t, tree, "s"); s.Panics != 3 || s.Errors != 3 || s.Restarts != 2 || s.Cycles != 3 {
					t.Errorf("%+v, want 3 panics, 3 errors, 2 restarts, 3 cycles", s)
				}
				records := log.records(t, "service panicked")
				if len(records) != 3 || records[0]["service"] != "s" || !strings.Contains(records[0]["stack"].(string), "panicHere") {
					t.Errorf("logged %v, want 3 panics with service and stack", records)
				}
				mustStop(t, tree)
			})
		})
	}
}

// Not: a panicked task counted as finished.
func TestS4_PanickedIsNotFinished(t *testing.T) {
	for kind, service := range panicking(supervise.Never{}) {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree := build(t, supervise.Config{Services: []supervise.Service{service}})
				_ = tree.Start(t.Context()) // its error is looked at in the test above
				if err := wait(t, tree); err == nil {
					t.Error("Wait = nil after a panic")
				}
				s := status(t, tree, "s")
				if s.State != supervise.StateFailed || !s.LastSuccess.IsZero() || s.LastError != "panic: boom" {
					t.Errorf("%+v, want failed, no success, the panic as last error", s)
				}
				mustStop(t, tree)
			})
		})
	}
}

func TestS4_PanicWhileStoppingIsNotACleanStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t,
			supervise.Loop("loop", func(ctx context.Context) error { <-ctx.Done(); panic(errBoom) }),
			supervise.Every("tick", time.Second, func(ctx context.Context) error { <-ctx.Done(); panic(errBoom) }),
		)
		synctest.Wait()
		mustStop(t, tree)
		wantState(t, tree, "loop", supervise.StateFailed)
		wantState(t, tree, "tick", supervise.StateFailed)
		if err := wait(t, tree); !errors.Is(err, errBoom) || !strings.Contains(err.Error(), `"loop"`) || !strings.Contains(err.Error(), `"tick"`) {
			t.Errorf("Wait = %v, want both panics", err)
		}
	})
}

func TestS4_GoexitIsAFailureToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := func(context.Context) error { runtime.Goexit(); return nil }
		tree := start(t,
			supervise.Loop("loop", leave, supervise.Restart(supervise.OnceMore{})),
			supervise.Every("tick", time.Second, leave),
		)
		if err := wait(t, tree); !errors.Is(err, supervise.ErrGaveUp) || !strings.Contains(err.Error(), "Goexit") {
			t.Errorf("Wait = %v, want ErrGaveUp and the reason", err)
		}
		time.Sleep(2500 * time.Millisecond)
		if s := status(t, tree, "tick"); s.Cycles != 3 || s.Errors != 3 || !s.LastSuccess.IsZero() {
			t.Errorf("%+v, want 3 failed cycles", s)
		}
	})
}

// A panicking tick must not run more often than a failing one.
func TestS4_RestartedTickKeepsItsInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := newTrace[int]()
		tree := start(t, supervise.Every("tick", time.Minute, func(context.Context) error { starts.add(0); panicHere(); return nil },
			supervise.Restart(supervise.Always{First: time.Second, Limit: time.Second})))
		time.Sleep(130 * time.Second)
		if _, at := starts.all(); !slices.Equal(at, seconds(0, 60, 120)) {
			t.Errorf("runs at %v, want 0s 60s 120s", at)
		}
		if err := tree.Wake("tick"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, at := starts.all(); len(at) != 4 {
			t.Errorf("runs at %v, want one more by Wake", at)
		}
	})
}

func TestS4_WakeDoesNotCutThePauseOfARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := newTrace[int]()
		tree := start(t, supervise.Every("tick", time.Second, func(context.Context) error { starts.add(0); panicHere(); return nil },
			supervise.Restart(supervise.Always{First: time.Minute, Limit: time.Minute})))
		synctest.Wait()
		if err := tree.Wake("tick"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * time.Second)
		if _, at := starts.all(); len(at) != 1 {
			t.Errorf("runs at %v, want none within the pause of at least 30s", at)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if _, at := starts.all(); len(at) != 2 {
			t.Errorf("runs at %v, want the second after the pause", at)
		}
	})
}

// An error that only contains somebody else's panic is a plain error.
func TestS4_WrappedPanicOfSomebodyElseIsNotCountedAsOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t, supervise.Every("tick", time.Minute, func(context.Context) error {
			return errors.Join(errors.New("child tree failed"), &supervise.PanicError{Value: "far away"})
		}))
		synctest.Wait()
		if s := status(t, tree, "tick"); s.Errors != 1 || s.Panics != 0 || s.Restarts != 0 {
			t.Errorf("%+v, want one error and no panic", s)
		}
	})
}
