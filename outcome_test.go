package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

func TestJ3_AttemptsAre25ByDefault(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(context.Context, *pawl.Job[Welcome]) error { return errors.New("no luck") })
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1})
		e.Advance(20 * time.Minute) // it fails at 1, 3, 7, ... s at the latest, and 1023 s
		if j := e.RequireState(r.ID, job.Waiting); j.MaxAttempts != 25 || j.Used < 10 || j.Used > 12 {
			t.Errorf("%d attempts of %d are burned", j.Used, j.MaxAttempts)
		}
	})
}

func TestJ9_RetryInBurnsAnAttemptAndChoosesItsTime(t *testing.T) {
	down := errors.New("the bank is closed")
	var seen record
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			return fmt.Errorf("charge: %w", pawl.RetryIn(time.Hour, down))
		}, pawl.Backoff(pawl.Constant(0)))
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1}, pawl.Attempts(3))
		e.Advance(30 * time.Minute)
		if j := e.RequireState(r.ID, job.Waiting); j.Used != 1 || j.Snoozes != 0 {
			t.Errorf("%d attempts burned, %d snoozes", j.Used, j.Snoozes)
		}
		if why, err := e.Why(t.Context(), r.ID); err != nil || !strings.HasSuffix(why.Text, "attempt 1 failed (charge: the bank is closed)") {
			t.Errorf("why: %q, %v", why, err)
		}
		e.Advance(time.Hour)
		if j := e.RequireState(r.ID, job.Waiting); j.Used != 2 {
			t.Errorf("%d attempts burned after an hour and a half", j.Used)
		}
		e.Advance(time.Hour)
		e.RequireState(r.ID, job.Dead)
		if why, err := e.Why(t.Context(), r.ID); err != nil || !strings.HasSuffix(why.Text, "all 3 attempts failed (charge: the bank is closed)") {
			t.Errorf("why it is dead: %q, %v", why, err)
		}
		if want := "false false true"; seen.String() != want {
			t.Errorf("final: %s, want %s", &seen, want)
		}
	}, pawltest.Config(func(c *pawl.Config) {
		c.Hooks.Error = func(_ context.Context, _ *pawl.Info, err error, final bool) {
			if seen.add("%v", final); !errors.Is(err, down) {
				t.Errorf("the hook saw %v", err)
			}
		}
	}))
}

func TestJ9_SnoozeKeepsItsReason(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if j.Run == 1 {
				return pawl.SnoozeFor(time.Hour, "the bank is closed")
			}
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1})
		e.Advance(time.Minute)
		j := e.RequireState(r.ID, job.Waiting)
		if j.Reason != "the bank is closed" || j.Used != 0 || j.Snoozes != 1 {
			t.Errorf("reason %q, %d attempts burned, %d snoozes", j.Reason, j.Used, j.Snoozes)
		}
		if why, err := e.Why(t.Context(), r.ID); err != nil || !strings.HasSuffix(why.Text, ": snoozed: the bank is closed") {
			t.Errorf("why: %q, %v", why, err)
		}
		e.Advance(time.Hour)
		if j := e.RequireState(r.ID, job.Done); j.Reason != "" {
			t.Errorf("a job that is done has reason %q", j.Reason)
		}
	})
}

func TestJ7_BackoffSeesTheErrorAndTheJob(t *testing.T) {
	limited := errors.New("rate limited")
	var seen record
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			switch j.Attempt {
			case 1:
				return fmt.Errorf("send: %w", limited)
			case 2:
				panic("kaboom")
			}
			return nil
		}, pawl.Backoff(func(f pawl.FailedAttempt) time.Duration {
			seen.add("%d/%d %q %v", f.Attempt, f.Job.MaxAttempts, f.Err, f.Job.Tags)
			if errors.Is(f.Err, limited) {
				return time.Hour
			}
			return time.Second
		}))
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1}, pawl.Attempts(7), pawl.Tags("a"))
		e.Advance(59 * time.Minute)
		e.RequireState(r.ID, job.Waiting)
		e.Advance(2 * time.Minute)
		e.RequireState(r.ID, job.Done)
		if want := `1/7 "send: rate limited" [a] 2/7 "panic: kaboom" [a]`; seen.String() != want {
			t.Errorf("saw %s, want %s", &seen, want)
		}
	})
}

func TestJ28_MiddlewareTellsOutcomesApart(t *testing.T) {
	fault := errors.New("fault")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nil":          {nil, ""},
		"plain":        {fault, ""},
		"snooze":       {pawl.Snooze(time.Second), "snooze"},
		"with reason":  {pawl.SnoozeFor(time.Second, "because"), "snooze"},
		"dead":         {pawl.Dead(fault), "dead"},
		"retry in":     {pawl.RetryIn(time.Second, fault), "retry"},
		"no reason":    {pawl.RetryIn(time.Second, nil), "retry"},
		"panic":        {&pawl.PanicError{Value: pawl.Dead(fault)}, ""},
		"wrapped dead": {fmt.Errorf("x: %w", pawl.Dead(fault)), "dead"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for word, is := range map[string]bool{"snooze": pawl.IsSnooze(c.err), "dead": pawl.IsDead(c.err), "retry": pawl.IsRetryIn(c.err)} {
				if is {
					got += word
				}
			}
			if got != c.want {
				t.Errorf("%v is %q, want %q", c.err, got, c.want)
			}
		})
	}
}

// Whatever middleware makes of a handler's panic, it sees it, the run does not
// succeed by it, the stack is kept, and it counts as a panic.
func TestJ11_MiddlewareSeesThePanicAndCannotSwallowIt(t *testing.T) {
	for name, c := range map[string]struct {
		middleware func(error) error
		state      job.State
		message    string
	}{
		"passes it on": {func(err error) error { return err }, job.Dead, "panic: kaboom"},
		"wraps it":     {func(err error) error { return fmt.Errorf("traced: %w", err) }, job.Dead, "traced: panic: kaboom"},
		"replaces it":  {func(error) error { return errors.New("sorry") }, job.Dead, "sorry"},
		"swallows it":  {func(error) error { return nil }, job.Dead, "panic: kaboom"},
		"gives up":     {pawl.Dead, job.Dead, "panic: kaboom"},
		"panics too":   {func(err error) error { panic(err) }, job.Dead, "panic: panic: kaboom"},
		"puts it off":  {func(error) error { return pawl.SnoozeFor(time.Hour, "later") }, job.Waiting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pawltest.Run(t, func(to *pawl.Engine) {
				pawl.Handle(to, func(context.Context, *pawl.Job[Welcome]) error { explode(); return nil }, pawl.Use(func(next pawl.Work) pawl.Work {
					return func(ctx context.Context, j *pawl.Info) error {
						err := next(ctx, j)
						var p *pawl.PanicError
						if !errors.As(err, &p) || p.Value != "kaboom" || !strings.Contains(string(p.Stack), "explode") {
							t.Errorf("middleware saw %v", err)
						}
						return c.middleware(err)
					}
				}))
			}, func(t *testing.T, e *pawltest.Engine) {
				r := e.Enqueue(Welcome{1}, pawl.Attempts(1))
				e.RunUntilIdle()
				j := e.RequireState(r.ID, c.state)
				if n := e.Stats().Panics; n != 1 {
					t.Errorf("%d panics counted", n)
				}
				f, failed := j.Failures.Last()
				if failed != (c.message != "") || f.Message != c.message || failed && !strings.Contains(f.Stack, "outcome_test.go") {
					t.Errorf("kept %+v", f)
				}
			})
		})
	}
}

// A failure says who ran the job, with which build, and since when.
func TestJ7_AFailureSaysWhoRanItAndSinceWhen(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(context.Context, *pawl.Job[Welcome]) error {
			time.Sleep(7 * time.Second) // virtual: how long the run takes
			return errors.New("no luck")
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1}, pawl.Attempts(1))
		e.Advance(time.Minute)
		j := e.RequireState(r.ID, job.Dead)
		last, ok := j.Failures.Last()
		if !ok || last.Label != "shop-worker-v7-a" || last.Version != "v7" || last.Worker == 0 {
			t.Errorf("it was run by %q of version %q (worker %d)", last.Label, last.Version, last.Worker)
		}
		if took := last.Time.Sub(last.Started); took != 7*time.Second {
			t.Errorf("the run took %v by its failure, want 7s", took)
		}
	}, pawltest.Config(func(c *pawl.Config) { c.Version, c.Worker = "v7", pawl.Worker{Prefix: "shop", ID: "a"} }))
}
