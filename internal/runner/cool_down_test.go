package runner_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// throttled is the outcome of a handler that was throttled for so long.
func throttled(d time.Duration) job.Outcome { return job.Outcome{Kind: job.Throttled, Delay: d} }

// flat makes cool-downs as long as handlers ask for.
func flat(c *runner.Config) { c.Queues[0].CoolDown = &job.BackoffSettings{Off: true} }

func TestJ8_AThrottledQueueSleepsItsCoolDownOut(t *testing.T) {
	inLab(t, func(l *lab) {
		var runs atomic.Int32
		refuse := atomic.Bool{}
		refuse.Store(true)
		work := func(context.Context, *runner.Task) job.Outcome {
			runs.Add(1)
			if refuse.Load() {
				return throttled(10 * time.Minute)
			}
			return succeed
		}
		a, b := l.run(1, work, flat), l.run(1, work, flat)
		ids := l.add(1, nil, a)
		after(time.Second)
		refuse.Store(false)
		ids = append(ids, l.add(5, nil, a, b)...)
		after(10 * time.Second)
		looks := a.Stats().Looks + b.Stats().Looks
		for range 50 { // hints do not make it look
			l.add(1, nil, a, b)
			after(10 * time.Second)
		}
		if n := a.Stats().Looks + b.Stats().Looks - looks; n > 0 {
			t.Errorf("%d looks while the queue cools down", n)
		}
		if runs.Load() != 1 {
			t.Errorf("%d runs while the queue cools down, want 1", runs.Load())
		}
		j := l.expect(ids[0], job.Waiting, 0, 0)
		if j.Reason != "throttled" || j.Throttles() != 1 {
			t.Errorf("its reason is %q with %d throttles", j.Reason, j.Throttles())
		}
		after(90 * time.Second)
		for _, id := range ids {
			l.expect(id, job.Done, 0, 0)
		}
		if runs.Load() != 57 {
			t.Errorf("%d runs in all, want 57", runs.Load())
		}
		a.stop()
		b.stop()
	})
}

// What looks again at the end of a cool-down is the end, not the poll.
func TestJ8_WorkGoesOnWhenTheCoolDownEnds(t *testing.T) {
	inLab(t, func(l *lab) {
		start, again := time.Now(), time.Duration(0)
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			if time.Since(start) < time.Second {
				return throttled(1500 * time.Millisecond)
			}
			again = time.Since(start)
			return succeed
		}, flat)
		id := l.add(1, nil, p)[0]
		after(4 * time.Second)
		l.expect(id, job.Done, 0, 0)
		if again < 1500*time.Millisecond || again > 1600*time.Millisecond {
			t.Errorf("it ran again after %v, want 1.5 s", again)
		}
		p.stop()
	})
}

func TestJ8_FortySimultaneousThrottlesCountOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		meet := make(chan struct{})
		var here atomic.Int32
		p := l.run(40, func(context.Context, *runner.Task) job.Outcome {
			if here.Add(1) == 40 {
				close(meet)
			}
			<-meet
			return throttled(time.Minute)
		}, flat)
		ids := l.add(40, nil, p)
		after(time.Second)
		s, err := store.SituationOf(l.t.Context(), l.store, ids[0])
		if err != nil || s.CoolDown == nil || s.CoolDown.Throttles != 1 {
			t.Errorf("the cool-down is %+v (%v), want one that was counted once", s.CoolDown, err)
		}
		for _, id := range ids {
			if j := l.expect(id, job.Waiting, 0, 0); j.Throttles() != 1 {
				t.Errorf("%d throttles of a job", j.Throttles())
			}
		}
		p.stop()
	})
}

// What was claimed ahead does not start when the queue is throttled meanwhile.
func TestJ8_WhatIsPrefetchedGoesBack(t *testing.T) {
	inLab(t, func(l *lab) {
		var runs atomic.Int32
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			time.Sleep(time.Millisecond) // virtual: short jobs are prefetched
			if runs.Add(1) == 50 {
				return throttled(time.Minute)
			}
			return succeed
		}, flat)
		l.add(300, nil, p)
		after(30 * time.Second)
		if runs.Load() != 50 {
			t.Errorf("%d runs, want those 50 until the throttle", runs.Load())
		}
		if n := p.Stats().Released; n == 0 {
			t.Error("nothing was prefetched")
		}
		after(time.Minute)
		if runs.Load() != 301 {
			t.Errorf("%d runs in all, want 301", runs.Load())
		}
		p.stop()
	})
}

func TestJ8_WorkersStayRegisteredDuringALongCoolDown(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return throttled(time.Hour) }, flat)
		l.add(1, nil, p)
		after(50 * time.Minute)
		list, err := l.store.Registry(l.t.Context())
		if err != nil || len(list) != 1 || list[0].Lost || time.Since(list[0].Beat) > 10*time.Second {
			t.Errorf("the registry has %+v (%v), want the worker, which beats", list, err)
		}
		if n := p.Stats().Registered; n != 1 {
			t.Errorf("it registered %d times", n)
		}
		p.stop()
	})
}

func TestJ8_SuccessesInFlightDoNotClearIt(t *testing.T) {
	inLab(t, func(l *lab) {
		var runs atomic.Int32
		p := l.run(2, func(context.Context, *runner.Task) job.Outcome {
			if runs.Add(1) == 1 {
				return throttled(time.Minute)
			}
			time.Sleep(5 * time.Second) // virtual: it ends during the cool-down
			return succeed
		}, flat)
		l.add(10, nil, p)
		after(50 * time.Second)
		if runs.Load() != 2 {
			t.Errorf("%d runs, want the throttled one and the one that was under way", runs.Load())
		}
		p.stop()
	})
}

func TestJ8_ACapOnConsecutiveThrottles(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return throttled(time.Second) }, flat)
		id := l.add(1, func(d *job.Draft) { d.Attempts = 2 }, p)[0]
		after((job.MaxThrottles + 1) * 1100 * time.Millisecond)
		if j := l.expect(id, job.Waiting, 1, 0); j.Throttles() > job.MaxThrottles {
			t.Errorf("%d throttles in a row", j.Throttles())
		}
		after((job.MaxThrottles + 1) * 1100 * time.Millisecond)
		l.expect(id, job.Dead, 2, 0)
		p.stop()
	})
}

func TestJ8_AnOperatorsResetWakesTheQueue(t *testing.T) {
	inLab(t, func(l *lab) {
		var runs atomic.Int32
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			if runs.Add(1) == 1 {
				return throttled(time.Hour)
			}
			return succeed
		}, flat)
		id := l.add(1, nil, p)[0]
		after(time.Minute)
		if err := p.faults.ResetCoolDown(l.t.Context(), "q", store.Operator{}); err != nil {
			t.Fatal(err)
		}
		p.SetPauses(runner.Pauses{}) // as the engine does when the revision has changed
		after(time.Second)
		l.expect(id, job.Done, 0, 0)
		p.stop()
	})
}

// Where the store cannot be asked, the job itself waits.
func TestJ8_AThrottleThatCannotBeToldDelaysItsJob(t *testing.T) {
	inLab(t, func(l *lab) {
		var runs atomic.Int32
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			if runs.Add(1) == 1 {
				return throttled(time.Minute)
			}
			return succeed
		}, flat)
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "CoolDown" {
					return errors.New("no")
				}
				return nil
			}
		})
		id := l.add(1, nil, p)[0]
		after(50 * time.Second)
		l.expect(id, job.Waiting, 0, 0)
		l.expect(l.add(1, nil, p)[0], job.Waiting, 0, 0)
		after(20 * time.Second)
		l.expect(id, job.Done, 0, 0)
		p.stop()
	})
}

func TestJ8_AScopeDrainsItsLimitAndTheQueueGoesOn(t *testing.T) {
	inLab(t, func(l *lab) {
		var drained []string
		var runs atomic.Int32
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			if runs.Add(1) == 1 {
				o := throttled(time.Minute)
				o.Scope = new("github")
				return o
			}
			return succeed
		}, func(c *runner.Config) {
			c.Drain = func(_ context.Context, _ *runner.Task, limit string, d time.Duration) error {
				drained = append(drained, limit+" "+d.String())
				return nil
			}
		})
		ids := l.add(2, nil, p)
		after(30 * time.Second)
		if len(drained) != 1 || drained[0] != "github 1m0s" {
			t.Errorf("drained %v", drained)
		}
		if j := l.expect(ids[0], job.Waiting, 0, 0); j.Reason != "throttled by github" || j.Throttles() != 1 {
			t.Errorf("its reason is %q with %d throttles", j.Reason, j.Throttles())
		}
		l.expect(ids[1], job.Done, 0, 0)
		after(40 * time.Second)
		l.expect(ids[0], job.Done, 0, 0)
		p.stop()
	})
}
