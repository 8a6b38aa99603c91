package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/kinds/demo"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run tests the handlers in virtual time, with a wait of 10 s after each failure.
func run(t *testing.T, test func(t *testing.T, e *pawltest.Engine)) {
	t.Helper()
	pawltest.Run(t, func(e *pawl.Engine) {
		demo.Register(e, pawl.Backoff(pawl.Constant(10*time.Second)))
	}, test)
}

func TestJ24_EchoGivesBackWhatItGot(t *testing.T) {
	run(t, func(t *testing.T, e *pawltest.Engine) {
		for given, want := range map[string]string{`{"a":[1,"b"]}`: `{"a":[1,"b"]}`, `"text"`: `"text"`, "": "null"} {
			j, err := e.Work(demo.Echo{Value: json.RawMessage(given)})
			if err != nil || j.State != pawl.StateDone || string(j.Result) != want {
				t.Errorf("%s: %s, %s, %v", given, j.State, j.Result, err)
			}
		}
	})
}

func TestJ24_SleepTakesItsTime(t *testing.T) {
	run(t, func(t *testing.T, e *pawltest.Engine) {
		began := time.Now()
		if j, err := e.Work(demo.Sleep{Seconds: 90.5}); err != nil || j.State != pawl.StateDone {
			t.Errorf("%s, %v", j.State, err)
		}
		if took := time.Since(began); took < 90500*time.Millisecond {
			t.Errorf("slept %v", took)
		}
	})
}

// A sleeper ends when it is asked to, long before its time.
func TestJ24_SleepEndsWhenItIsCancelled(t *testing.T) {
	run(t, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(demo.Sleep{Seconds: 3600})
		go func() {
			time.Sleep(time.Minute)
			if _, err := e.Cancel(context.Background(), r.ID); err != nil {
				t.Error(err)
			}
		}()
		e.RunUntilIdle()
		j := e.RequireState(r.ID, pawl.StateCancelled)
		if ran := j.Finished.Sub(j.Created); ran > 10*time.Minute {
			t.Errorf("ended after %v", ran)
		}
	})
}

func TestJ24_FailFailsAsOftenAsItIsTold(t *testing.T) {
	run(t, func(t *testing.T, e *pawltest.Engine) {
		twice := e.Enqueue(demo.Fail{Times: 2, Message: "no luck"})
		always := e.Enqueue(demo.Fail{}, pawl.Attempts(3))
		final := e.Enqueue(demo.Fail{Dead: true})
		e.RunUntilIdle()
		e.RequireState(final.ID, pawl.StateDead)
		e.RequireState(twice.ID, pawl.StateWaiting)
		e.Advance(time.Minute)
		j := e.RequireState(twice.ID, pawl.StateDone)
		if failures := j.Failures.List(); len(failures) != 2 || failures[1].Message != "no luck" {
			t.Errorf("failures %+v", failures)
		}
		j = e.RequireState(always.ID, pawl.StateDead)
		if failures := j.Failures.List(); len(failures) != 3 || failures[0].Message != "failed as asked" {
			t.Errorf("failures %+v", failures)
		}
	})
}

// A throttled job burns no attempt, and its queue cools down.
func TestJ24_ThrottleIsThrottledAsOftenAsItIsTold(t *testing.T) {
	run(t, func(t *testing.T, e *pawltest.Engine) {
		once := e.Enqueue(demo.Throttle{}, pawl.Attempts(1))
		thrice := e.Enqueue(demo.Throttle{Times: 3, Seconds: 20}, pawl.Attempts(1))
		e.RunUntilIdle()
		e.RequireState(thrice.ID, pawl.StateWaiting)
		if why, err := e.Why(t.Context(), once.ID); err != nil || why.Code != pawl.WhyCooling {
			t.Errorf("why: %v, %v", why, err)
		}
		e.Advance(5 * time.Minute)
		e.RequireState(once.ID, pawl.StateDone)
		j := e.RequireState(thrice.ID, pawl.StateDone)
		if n := j.Throttles(); n != 3 {
			t.Errorf("throttled %d times", n)
		}
		if ran := j.Finished.Sub(j.Created); ran < time.Minute {
			t.Errorf("done after %v, though throttled for 20 s three times", ran)
		}
	})
}

func TestJ24_PanicPanicsAsOftenAsItIsTold(t *testing.T) {
	run(t, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(demo.Panic{Times: 1, Message: "boom"})
		always := e.Enqueue(demo.Panic{}, pawl.Attempts(1))
		e.RunUntilIdle()
		e.RequireState(r.ID, pawl.StateWaiting)
		e.RequireState(always.ID, pawl.StateDead)
		e.Advance(time.Minute)
		failures := e.RequireState(r.ID, pawl.StateDone).Failures.List()
		if len(failures) != 1 || failures[0].Message != "panic: boom" || !strings.Contains(failures[0].Stack, "demo.panics") {
			t.Errorf("failures %+v", failures)
		}
	})
}

func TestJ24_ProgressSaysHowFarItIs(t *testing.T) {
	run(t, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(demo.Progress{Steps: 4, Seconds: 30})
		seen := make(chan job.Progress, 1)
		go func() {
			time.Sleep(75 * time.Second) // two steps are done by now
			j, err := e.Get(context.Background(), r.ID)
			if err != nil {
				t.Error(err)
			}
			seen <- j.Progress
		}()
		e.RunUntilIdle()
		if p := <-seen; p.Done != 2 || p.Total != 4 {
			t.Errorf("after 75 s: %+v", p)
		}
		j := e.RequireState(r.ID, pawl.StateDone)
		if j.Progress.Done != 4 || j.Progress.Total != 4 {
			t.Errorf("at the end: %+v", j.Progress)
		}
	})
}

// What is out of bounds is dead at once, with field, value and bound.
func TestJ24_BoundsAreKept(t *testing.T) {
	run(t, func(t *testing.T, e *pawltest.Engine) {
		for _, args := range []pawl.Args{
			demo.Sleep{Seconds: -1}, demo.Sleep{Seconds: 86401}, demo.Throttle{Seconds: -2}, demo.Throttle{Times: 101},
			demo.Progress{Steps: 10_001}, demo.Progress{Steps: -1}, demo.Progress{Steps: 1, Seconds: 1e300},
		} {
			j, err := e.Work(args)
			if !errors.Is(err, pawl.ErrInvalid) || j.State != pawl.StateDead {
				t.Errorf("%+v: %s, %v", args, j.State, err)
			}
		}
	})
}

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	demo.Register(e)
	r, err := e.Enqueue(ctx, demo.Echo{Value: json.RawMessage(`"hello"`)})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		defer stop()
		if _, err := e.Wait(ctx, r.ID); err != nil {
			log.Print(err)
		}
		said, err := pawl.Result[string](ctx, e, r.ID)
		fmt.Println(said, err)
	}()
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: hello <nil>
}
