package supervise_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/supervise"
)

var errBoom = errors.New("boom")

// failAfter is a Loop function whose attempts fail after the given times and then run on.
func failAfter(lasts ...time.Duration) (run func(context.Context) error, starts *trace[int]) {
	starts = newTrace[int]()
	attempt := -1
	return func(ctx context.Context) error {
		attempt++
		starts.add(attempt)
		if attempt >= len(lasts) {
			return untilStopped(ctx)
		}
		time.Sleep(lasts[attempt])
		return errBoom
	}, starts
}

func TestS3_NeverRestartsNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, starts := failAfter(time.Second)
		tree := start(t, supervise.Loop("loop", run, supervise.Restart(supervise.Never{})))
		if err := wait(t, tree); !errors.Is(err, supervise.ErrGaveUp) || !errors.Is(err, errBoom) {
			t.Errorf("Wait = %v, want ErrGaveUp and boom", err)
		}
		if _, at := starts.all(); len(at) != 1 {
			t.Errorf("started at %v, want once", at)
		}
	})
}

func TestS3_OnceMoreRestartsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, starts := failAfter(time.Second, time.Hour)
		tree := start(t, supervise.Loop("loop", run, supervise.Restart(supervise.OnceMore{})))
		if err := wait(t, tree); !errors.Is(err, supervise.ErrGaveUp) {
			t.Errorf("Wait = %v, want ErrGaveUp", err)
		}
		if _, at := starts.all(); !slices.Equal(at, seconds(0, 1)) {
			t.Errorf("started at %v, want 0s 1s", at)
		}
	})
}

// Restarts at 0, 9 and 10.5 are never three within any 10 s. A window that is emptied every 10 s
// would also allow one at 11, one that never forgets would refuse the one at 10.5.
func TestS3_BoundedWindowSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, starts := failAfter(seconds(0, 9, 1.5, 0.5, 0, 0)...)
		tree := start(t, supervise.Loop("loop", run, supervise.Restart(supervise.Bounded{Max: 2, Window: 10 * time.Second})))
		if err := wait(t, tree); !errors.Is(err, supervise.ErrGaveUp) {
			t.Errorf("Wait = %v, want ErrGaveUp", err)
		}
		if _, at := starts.all(); !slices.Equal(at, seconds(0, 0, 9, 10.5)) {
			t.Errorf("started at %v, want 0s 0s 9s 10.5s", at)
		}
		if got := time.Since(starts.epoch); got != 11*time.Second {
			t.Errorf("gave up after %v, want 11s", got)
		}
	})
}

func TestS3_BoundedForgetsARestartThatIsExactlyWindowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, starts := failAfter(seconds(1, 10, 10, 10)...)
		tree := start(t, supervise.Loop("loop", run, supervise.Restart(supervise.Bounded{Max: 1, Window: 10 * time.Second})))
		time.Sleep(time.Minute)
		if _, at := starts.all(); !slices.Equal(at, seconds(0, 1, 11, 21, 31)) {
			t.Errorf("started at %v, want 0s 1s 11s 21s 31s", at)
		}
		wantState(t, tree, "loop", supervise.StateRunning)
	})
}

func TestS3_AlwaysBacksOffExponentiallyWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trees, restarts = 20, 8
		distinct := make(map[time.Duration]bool)
		for range trees {
			run, starts := failAfter(make([]time.Duration, restarts)...)
			tree := start(t, supervise.Loop("loop", run, supervise.Restart(supervise.Always{First: time.Second, Limit: 20 * time.Second})))
			time.Sleep(time.Hour)
			mustStop(t, tree)
			_, at := starts.all()
			if len(at) != restarts+1 {
				t.Fatalf("%d starts, want %d", len(at), restarts+1)
			}
			for i, most := range seconds(1, 2, 4, 8, 16, 20, 20, 20) {
				pause := at[i+1] - at[i]
				if pause < most/2 || pause > most {
					t.Errorf("pause %d is %v, want %v to %v", i+1, pause, most/2, most)
				}
				distinct[pause] = true
			}
		}
		if len(distinct) < trees {
			t.Errorf("only %d different pauses in %d restarts: no jitter", len(distinct), trees*restarts)
		}
	})
}

func TestS3_AlwaysStartsAfreshAfterALongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, starts := failAfter(0, 0, 0, 20*time.Second, 0)
		start(t, supervise.Loop("loop", run, supervise.Restart(supervise.Always{First: time.Second, Limit: 20 * time.Second})))
		time.Sleep(time.Hour)
		_, at := starts.all()
		if pause := at[4] - at[3] - 20*time.Second; pause > time.Second {
			t.Errorf("pause after a run as long as Limit is %v, want at most First (1s)", pause)
		}
		if pause := at[5] - at[4]; pause < time.Second || pause > 2*time.Second {
			t.Errorf("pause after that is %v, want 1s to 2s", pause)
		}
	})
}

// Not: a used-up budget that looks like a clean exit.
func TestS3_UsedUpBudgetIsAnError(t *testing.T) {
	policies := map[string]supervise.Policy{
		"never":     supervise.Never{},
		"once more": supervise.OnceMore{},
		"bounded":   supervise.Bounded{Max: 3, Window: time.Minute},
	}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree := start(t,
					supervise.Loop("innocent", untilStopped),
					supervise.Group("keeper", supervise.Loop("guilty", func(context.Context) error { return errBoom }, supervise.Restart(policy))),
				)
				err := wait(t, tree) // while the innocent runs on
				if !errors.Is(err, supervise.ErrGaveUp) || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), `"keeper/guilty"`) {
					t.Errorf("Wait = %v, want ErrGaveUp, the last error and the name", err)
				}
				wantState(t, tree, "keeper/guilty", supervise.StateFailed)
				wantState(t, tree, "innocent", supervise.StateRunning)
				mustStop(t, tree)
				if err := wait(t, tree); !errors.Is(err, supervise.ErrGaveUp) {
					t.Errorf("Wait after Stop = %v, want ErrGaveUp still", err)
				}
				wantState(t, tree, "keeper/guilty", supervise.StateFailed)
			})
		})
	}
}

func TestS3_EveryFailedServiceIsInTheErrorOfWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("late")
		tree := start(t,
			supervise.Loop("second", func(context.Context) error { time.Sleep(time.Second); return late }, supervise.Restart(supervise.Never{})),
			supervise.Loop("first", func(context.Context) error { return errBoom }, supervise.Restart(supervise.Never{})),
		)
		if err := wait(t, tree); !errors.Is(err, errBoom) || errors.Is(err, late) {
			t.Errorf("Wait = %v, want boom only", err)
		}
		time.Sleep(2 * time.Second)
		if err := wait(t, tree); !errors.Is(err, errBoom) || !errors.Is(err, late) {
			t.Errorf("Wait = %v, want both", err)
		}
	})
}

func TestS3_NilIsACleanEndUnderEveryPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t,
			supervise.Loop("never", nothing, supervise.Restart(supervise.Never{})),
			supervise.Loop("bounded", nothing, supervise.Restart(supervise.Bounded{})),
			supervise.Loop("always", nothing, supervise.Restart(supervise.Always{})),
		)
		if err := wait(t, tree); err != nil {
			t.Errorf("Wait = %v, want nil", err)
		}
		for _, s := range tree.Snapshot() {
			if s.State != supervise.StateDone || s.Cycles != 1 {
				t.Errorf("%s is %s after %d runs, want done after 1", s.Name, s.State, s.Cycles)
			}
		}
	})
}

func TestS3_ServicesWithTheSamePolicyValueHaveBudgetsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := supervise.Restart(supervise.Bounded{Max: 2, Window: time.Minute})
		services := make([]supervise.Service, 0, 3)
		for _, name := range []string{"a", "b", "c"} {
			run, _ := failAfter(0, 0)
			services = append(services, supervise.Loop(name, run, policy))
		}
		tree := start(t, services...)
		synctest.Wait()
		for _, s := range tree.Snapshot() {
			if s.State != supervise.StateRunning || s.Restarts != 2 {
				t.Errorf("%s is %s after %d restarts, want running after 2", s.Name, s.State, s.Restarts)
			}
		}
	})
}

func TestS3_StopEndsAPauseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t, supervise.Loop("loop", func(context.Context) error { return errBoom },
			supervise.Restart(supervise.Always{First: time.Hour, Limit: time.Hour})))
		synctest.Wait()
		wantState(t, tree, "loop", supervise.StateRestarting)
		before := time.Now()
		mustStop(t, tree)
		if took := time.Since(before); took != 0 {
			t.Errorf("Stop took %v, want no time", took)
		}
		wantState(t, tree, "loop", supervise.StateStopped)
	})
}
