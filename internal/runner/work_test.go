package runner_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
)

func TestWork_JobsRunAndAreDone(t *testing.T) {
	inLab(t, func(l *lab) {
		var ran atomic.Int64
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome { ran.Add(1); return succeed })
		ids := l.add(100, nil, p)
		synctest.Wait() // no time passes: nothing of this needs a timer
		for _, id := range ids {
			l.expect(id, job.Done, 0, 0)
		}
		if ran.Load() != 100 {
			t.Errorf("handlers ran %d times, want 100", ran.Load())
		}
		s := p.Stats()
		if s.Claimed != 100 || s.Finished[job.Succeeded] != 100 || !p.Idle() {
			t.Errorf("stats: %+v", s)
		}
		p.stop()
	})
}

func TestWork_SlotsAreTheLimit(t *testing.T) {
	inLab(t, func(l *lab) {
		var now, most atomic.Int64
		p := l.run(3, func(context.Context, *runner.Task) job.Outcome {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Millisecond)
			now.Add(-1)
			return succeed
		})
		l.add(60, nil, p)
		after(20 * time.Millisecond) // 60 jobs of 1 ms in 3 slots
		if got := p.Stats().Finished[job.Succeeded]; got != 60 || most.Load() != 3 {
			t.Errorf("%d jobs done in 20 ms, at most %d at once; want all 60, 3", got, most.Load())
		}
		p.stop()
	})
}

func TestJ6_OrderIsPriorityThenDueThenID(t *testing.T) {
	inLab(t, func(l *lab) {
		var mu sync.Mutex
		var order []job.ID
		var want []job.ID
		low := l.add(2, func(d *job.Draft) { d.Priority = 7 })
		mid := l.add(2, nil)
		high := l.add(2, func(d *job.Draft) { d.Priority = 1 })
		want = slices.Concat(high, mid, low)
		p := l.run(1, func(_ context.Context, t *runner.Task) job.Outcome {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, t.Job.ID)
			return succeed
		})
		after(time.Second)
		if !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		p.stop()
	})
}

func TestWork_ScheduledJobIsSleptForNotPolledFor(t *testing.T) {
	inLab(t, func(l *lab) {
		var at time.Time
		start := time.Now()
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { at = time.Now(); return succeed },
			func(c *runner.Config) { c.PollOnly = time.Minute })
		l.add(1, func(d *job.Draft) { d.In = 7 * time.Second }, p)
		after(10 * time.Second)
		if late := at.Sub(start) - 7*time.Second; at.IsZero() || late < 0 || late > 2*time.Millisecond {
			t.Errorf("started %v after its due time", late)
		}
		if looks := p.Stats().Looks; looks > 6 {
			t.Errorf("%d looks for one scheduled job", looks)
		}
		p.stop()
	})
}

func TestWork_RetryIsLookedForWhenDue(t *testing.T) {
	inLab(t, func(l *lab) {
		var starts []time.Duration
		begin := time.Now()
		p := l.run(1, func(_ context.Context, t *runner.Task) job.Outcome {
			starts = append(starts, time.Since(begin))
			return fail
		}, func(c *runner.Config) {
			c.PollOnly = time.Hour
			c.Kinds[0].Backoff = func(f job.FailedAttempt) time.Duration { return time.Duration(f.Attempt) * time.Second }
		})
		id := l.add(1, func(d *job.Draft) { d.Attempts = 3 }, p)[0]
		after(time.Minute)
		j := l.expect(id, job.Dead, 3, 0)
		if len(j.Failures.List()) != 3 || len(starts) != 3 {
			t.Fatalf("%d failures, %d runs, want 3", len(j.Failures.List()), len(starts))
		}
		for i, want := range []time.Duration{0, time.Second, 3 * time.Second} {
			if d := starts[i] - want; d < 0 || d > 10*time.Millisecond {
				t.Errorf("run %d started at %v, want %v", i+1, starts[i], want)
			}
		}
		p.stop()
	})
}

func TestWork_PollFindsWhatNobodyHinted(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return succeed })
		id := l.add(1, nil)[0] // tells nobody
		after(500 * time.Millisecond)
		l.expect(id, job.Done, 0, 0)
		p.stop()
	})
}

func TestJ9_SnoozeBurnsNoAttemptAndDeadIsFinal(t *testing.T) {
	inLab(t, func(l *lab) {
		runs := 0
		p := l.run(1, func(_ context.Context, t *runner.Task) job.Outcome {
			if runs++; runs == 1 {
				return job.Outcome{Kind: job.Snoozed, Delay: time.Minute}
			}
			return job.Outcome{Kind: job.GaveUp, Message: "no such user"}
		})
		id := l.add(1, nil, p)[0]
		synctest.Wait()
		if j := l.expect(id, job.Waiting, 0, 0); j.Snoozes != 1 {
			t.Errorf("%d snoozes, want 1", j.Snoozes)
		}
		after(61 * time.Second)
		l.expect(id, job.Dead, 1, 0)
		p.stop()
	})
}

func TestJ14_UnknownKindIsLeftForAnother(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(2, func(context.Context, *runner.Task) job.Outcome { return succeed })
		other := l.add(1, func(d *job.Draft) { d.Kind = "other" }, p)[0]
		known := l.add(1, nil, p)[0]
		after(time.Second)
		l.expect(known, job.Done, 0, 0)
		if j := l.expect(other, job.Waiting, 0, 0); j.Run != 0 {
			t.Errorf("claimed %d times by a worker that does not know its kind", j.Run)
		}
		newer := l.run(2, func(context.Context, *runner.Task) job.Outcome { return succeed },
			func(c *runner.Config) { c.Kinds[0].Name = "other" })
		after(time.Second)
		l.expect(other, job.Done, 0, 0)
		newer.stop()
		p.stop()
	})
}
