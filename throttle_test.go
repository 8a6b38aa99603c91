package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func (w *way) CoolDown(ctx context.Context, queue string, t job.Throttle) (store.CoolDownReply, error) {
	return w.Store.(store.CoolDowns).CoolDown(ctx, queue, t)
}

func (w *way) ResetCoolDown(ctx context.Context, queue string, op store.Operator) error {
	return w.Store.(store.CoolDowns).ResetCoolDown(ctx, queue, op)
}

// throttling handles Welcome: it is throttled until the service lets it pass.
func throttling(refuse *atomic.Bool, runs *atomic.Int32, err error) func(*pawl.Engine) {
	return func(e *pawl.Engine) {
		pawl.Handle(e, func(_ context.Context, j *pawl.Job[Welcome]) error {
			runs.Add(1)
			if refuse.Load() {
				return err
			}
			return nil
		})
	}
}

func TestJ8_AThrottledQueueCoolsDownEverywhereUntilItIsReset(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var refuse atomic.Bool
		var runs atomic.Int32
		refuse.Store(true)
		work := throttling(&refuse, &runs, fmt.Errorf("smtp: 421: %w", pawl.Throttled(30*time.Minute)))
		a := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 5}}}, work)
		at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 5}}}, work)
		id := a.add(1)[0]
		soon()
		refuse.Store(false)
		others := a.add(20)
		pass(10 * time.Minute)
		if n := runs.Load(); n != 1 {
			t.Errorf("%d runs, want the one that was throttled", n)
		}
		j, err := a.Get(t.Context(), id)
		a.must(err)
		if j.State != pawl.StateWaiting || j.Used != 0 || j.Reason != "throttled: smtp: 421" {
			t.Errorf("the job is %s with %d attempts used: %s", j.State, j.Used, j.Reason)
		}
		for _, id := range []pawl.ID{id, others[7]} {
			why, err := a.Why(t.Context(), id)
			a.must(err)
			if why.Code != pawl.WhyCooling || !strings.HasPrefix(why.String(), "queue default cools down until ") || !strings.HasSuffix(why.String(), "(throttled once)") {
				t.Errorf("why: %s %s", why.Code, why)
			}
		}
		queues, err := a.Queues(t.Context())
		a.must(err)
		if len(queues) != 1 || queues[0].CoolDown == nil || queues[0].CoolDown.Throttles != 1 || !queues[0].CoolDown.Until.After(time.Now()) {
			t.Errorf("the queues are %+v", queues)
		}
		ops := at.settle(pawl.Config{})
		ops.must(ops.Queue("default").ResetCoolDown(pawl.As(t.Context(), "ann", "they are back")))
		pass(2 * time.Second)
		if n := runs.Load(); n != 22 {
			t.Errorf("%d runs after the reset, want 22", n)
		}
		audit, err := ops.Audit(t.Context(), pawl.AuditFilter{Target: "default"}, pawl.AuditPage{})
		ops.must(err)
		if len(audit.Entries) != 1 || audit.Entries[0].Action != "reset cool-down" || audit.Entries[0].By != "ann" {
			t.Errorf("the audit log has %+v", audit.Entries)
		}
		if err := ops.Queue("a b").ResetCoolDown(t.Context()); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("reset of a queue that cannot be: %v", err)
		}
	})
}

// Operators decide by what a queue's cool-downs grow.
func TestJ8_CoolDownsGrowByTheQueuesBackoff(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var refuse atomic.Bool
		var runs atomic.Int32
		refuse.Store(true)
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}}, throttling(&refuse, &runs, pawl.Throttled(0)))
		lasts := func() time.Duration {
			t.Helper()
			queues, err := w.Queues(t.Context(), "default")
			w.must(err)
			if queues[0].CoolDown == nil {
				return 0
			}
			return queues[0].CoolDown.Until.Sub(queues[0].CoolDown.Since)
		}
		w.must(w.Queue("default").Set(t.Context(), pawl.QueueSettings{Backoff: &pawl.BackoffSettings{Base: 10 * time.Second, Factor: 3}}))
		soon()
		w.add(1)
		for _, want := range []time.Duration{10 * time.Second, 30 * time.Second, 90 * time.Second} {
			soon()
			if got := lasts(); got != want {
				t.Errorf("the queue cools down for %v, want %v", got, want)
			}
			pass(want - time.Second)
		}
		w.must(w.Queue("default").Set(t.Context(), pawl.QueueSettings{Backoff: &pawl.BackoffSettings{Off: true}}))
		w.must(w.Queue("default").ResetCoolDown(t.Context()))
		for range 2 {
			soon()
			if got := lasts(); got != time.Minute {
				t.Errorf("without backoff the queue cools down for %v, want a minute", got)
			}
			pass(time.Minute - 500*time.Millisecond)
		}
	})
}

// A handler knows how often its job was throttled.
func TestJ8_HandlersSeeTheirThrottles(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var seen []int
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}}, func(e *pawl.Engine) {
			pawl.Handle(e, func(_ context.Context, j *pawl.Job[Welcome]) error {
				if seen = append(seen, j.Throttles); len(seen) < 4 {
					return pawl.Throttled(0)
				}
				return nil
			})
		})
		id := w.add(1)[0]
		pass(time.Minute)
		if fmt.Sprint(seen) != "[0 1 2 3]" || w.state(id) != pawl.StateDone {
			t.Errorf("throttles as handlers saw them: %v, the job is %s", seen, w.state(id))
		}
		if n := w.Stats().Finished[pawl.OutcomeThrottled]; n != 3 {
			t.Errorf("%d throttled runs are counted", n)
		}
	})
}

func TestJ8_AScopeCoolsOnlyItsLimit(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		runs := map[int64]int{}
		w := at.work(pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 1}},
			Limits: []pawl.Limit{{Name: "github", PerSecond: 100, Burst: 100}},
		}, func(e *pawl.Engine) {
			pawl.Handle(e, func(_ context.Context, j *pawl.Job[Welcome]) error {
				if runs[j.Args.UserID]++; j.Args.UserID == 0 && runs[0] == 1 {
					return pawl.Throttled(time.Minute, pawl.Scope("github"))
				}
				return nil
			})
		})
		ids := w.add(5)
		pass(10 * time.Second)
		for i, want := range []pawl.State{pawl.StateWaiting, pawl.StateDone, pawl.StateDone, pawl.StateDone, pawl.StateDone} {
			if got := w.state(ids[i]); got != want {
				t.Errorf("job %d is %s, want %s", i, got, want)
			}
		}
		why, err := w.Why(t.Context(), ids[0])
		w.must(err)
		if why.Code != pawl.WhyThrottled || !strings.HasSuffix(why.String(), ": throttled by github") {
			t.Errorf("why: %s %s", why.Code, why)
		}
		short, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := w.Acquire(short, "github", 1); err == nil {
			t.Error("the limit that throttled gives a token")
		}
		pass(30 * time.Second)
		_, err = w.Acquire(t.Context(), "github", 1)
		w.must(err)
		if w.state(ids[0]) != pawl.StateDone {
			t.Errorf("the throttled job is %s", w.state(ids[0]))
		}
	})
}

func TestJ8_IsThrottled(t *testing.T) {
	err := fmt.Errorf("github: %w", pawl.Throttled(time.Minute, pawl.Scope("github")))
	if !pawl.IsThrottled(err) || pawl.IsThrottled(pawl.Snooze(time.Minute)) || pawl.IsSnooze(err) || pawl.IsDead(err) || pawl.IsThrottled(nil) {
		t.Error("it is taken for something else")
	}
	if want := "github: pawl: throttled by github for 1m0s"; err.Error() != want {
		t.Errorf("it says %q, want %q", err, want)
	}
	if want := "pawl: throttled"; pawl.Throttled(-time.Second).Error() != want {
		t.Errorf("it says %q, want %q", pawl.Throttled(-time.Second), want)
	}
}
