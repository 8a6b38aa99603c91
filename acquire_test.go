package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

// acquired is some tokens, and when they were there.
type acquired struct {
	at time.Time
	n  int
}

// acquisitions are recorded as they happen, and checked by a model that knows nothing of buckets: over any time
// that begins and ends with one of them, there are no more than burst + rate × time, in exact numbers.
type acquisitions struct {
	mu   sync.Mutex
	list []acquired
}

func (a *acquisitions) add(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, acquired{time.Now(), n})
}

func (a *acquisitions) total() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.list {
		n += x.n
	}
	return n
}

func (a *acquisitions) check(t *testing.T, perSecond float64, burst int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortStableFunc(a.list, func(x, y acquired) int { return x.at.Compare(y.at) })
	rate := new(big.Rat).SetFloat64(perSecond)
	most := big.NewRat(int64(burst), 1)
	// What was used before one, less what has come until then: where it is least, the longest excess begins.
	var least *big.Rat
	var begin time.Time
	used := 0
	for _, x := range a.list {
		came := new(big.Rat).Mul(rate, big.NewRat(int64(x.at.Sub(a.list[0].at)), int64(time.Second)))
		before := new(big.Rat).Sub(big.NewRat(int64(used), 1), came)
		if least == nil || before.Cmp(least) < 0 {
			least, begin = before, x.at
		}
		used += x.n
		over := new(big.Rat).Sub(big.NewRat(int64(used), 1), came)
		if over.Sub(over, least).Cmp(most) > 0 {
			f, _ := over.Float64()
			t.Fatalf("within %v, %.3f tokens more were acquired than came, and the burst is %d", x.at.Sub(begin), f, burst)
		}
	}
}

func TestJ17_AcquireWaitsForItsTokens(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		e := at.settle(pawl.Config{Limits: []pawl.Limit{{Name: "github", Burst: 2, PerSecond: 1}}})
		begin := time.Now()
		for i, want := range []time.Duration{0, 0, time.Second, 2 * time.Second} {
			wait, err := e.Acquire(t.Context(), "github", 1)
			if took := time.Since(begin); err != nil || wait != 0 || took < want || took > want+time.Second {
				t.Errorf("token %d came after %v (%v, %v), want %v", i+1, took, wait, err, want)
			}
		}
	})
}

func TestJ17_AcquireSaysWhen(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		e := at.settle(pawl.Config{Limits: []pawl.Limit{{Name: "slow", Burst: 3, PerSecond: 0.1}}})
		if _, err := e.Acquire(t.Context(), "slow", 3); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			wait, err := e.Acquire(ctx, "slow", 1)
			cancel()
			if !errors.Is(err, pawl.ErrRateLimited) || wait < 9*time.Second || wait > 10*time.Second {
				t.Errorf("got %v, %v, want 10 s and ErrRateLimited", wait, err)
			}
		}
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("that took %v, want it at once", took)
		}
		pass(10 * time.Second) // nothing was taken by those who were told to come later
		if wait, err := e.Acquire(t.Context(), "slow", 1); err != nil || wait != 0 || time.Since(begin) > 11*time.Second {
			t.Errorf("got %v, %v after %v", wait, err, time.Since(begin))
		}
	})
}

// That many tokens were refused says nothing of fewer: those that are there are had at once. And who wants more than was
// refused is told of a longer wait.
func TestJ17_ARefusalOfManyIsNoneOfFew(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		slow := pawl.Limit{Name: "slow", Burst: 3, PerSecond: 0.001}
		e := at.settle(pawl.Config{Limits: []pawl.Limit{slow, {Name: "other", Burst: 3, PerSecond: 0.001}}})
		for _, c := range []struct {
			limit string
			n     int
			wait  time.Duration // and a second less
		}{
			{"slow", 1, 0}, {"slow", 3, 1000 * time.Second}, {"slow", 2, 0}, // two were left
			{"other", 3, 0}, {"other", 1, 1000 * time.Second}, {"other", 3, 3000 * time.Second}, {"other", 2, 2000 * time.Second},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			wait, err := e.Acquire(ctx, c.limit, c.n)
			cancel()
			if wait < c.wait-time.Second || wait > c.wait || errors.Is(err, pawl.ErrRateLimited) != (c.wait > 0) || err != nil && c.wait == 0 {
				t.Errorf("%d tokens of %s: %v, %v, want %v", c.n, c.limit, wait, err, c.wait)
			}
		}
	})
}

func TestJ17_WhatCannotBeAcquiredIsRefused(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		e := at.settle(pawl.Config{Limits: []pawl.Limit{
			{Name: "github", Burst: 2, PerSecond: 1},
			{Name: "render", Kind: "render.*", Concurrent: 2},
			{Name: "tenants", Queue: "imports", PerKey: true, PerSecond: 1},
		}})
		acquire := func(limit string, n int) error { _, err := e.Acquire(t.Context(), limit, n); return err }
		for want, err := range map[string]error{
			"tokens 3: must be at most 2, the burst of limit github": acquire("github", 3),
			"tokens 0: must be 1 or more":                            acquire("github", 0),
			`limit "nobody": is not declared`:                        acquire("nobody", 1),
			`limit "render": has no rate`:                            acquire("render", 1),
			`limit "tenants": is per key`:                            acquire("tenants", 1),
			`context "of no handler"`:                                pawl.Acquire(t.Context(), "github", 1),
			`drain 0s: must be more`:                                 e.Limit("github").Drain(t.Context(), 0),
		} {
			if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	})
}

// Eight workers in three processes share a rate: never more than it allows, nearly all of it, and less than one
// statement for ten tokens.
func TestJ17_ProcessesShareARate(t *testing.T) {
	for _, c := range []struct {
		perSecond  float64
		burst      int
		loses      int64
		least      int // of the tokens that come in ten seconds
		statements bool
	}{
		{perSecond: 100, burst: 100, least: 990, statements: true},
		{perSecond: 1000, burst: 1000, least: 9900, statements: true},
		{perSecond: 20, burst: 2, least: 150},
		{perSecond: 100, burst: 100, loses: 5},
	} {
		t.Run(fmt.Sprintf("%v with bursts of %d, losing %d", c.perSecond, c.burst, c.loses), func(t *testing.T) {
			inTown(t, func(t *testing.T, at *town) {
				var got acquisitions
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				var residents []*resident
				var group sync.WaitGroup
				for i := range 8 {
					if i < 3 {
						e := at.settle(pawl.Config{Limits: []pawl.Limit{{Name: "github", Burst: c.burst, PerSecond: c.perSecond}}})
						e.way.loses.Store(c.loses)
						residents = append(residents, e)
					}
					e := residents[i%3]
					group.Go(func() {
						for ctx.Err() == nil {
							n := 1
							if !c.statements {
								n += i % 2
							}
							_, err := e.Acquire(ctx, "github", n)
							switch {
							case err == nil:
								got.add(n)
							case errors.Is(err, pawl.ErrRateLimited): // the rest of the time brings no more
								return
							case !errors.Is(err, pawl.ErrOutcomeUnknown) && ctx.Err() == nil:
								t.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				got.check(t, c.perSecond, c.burst)
				statements := int64(0)
				for _, e := range residents {
					statements += e.way.takes.Load()
				}
				t.Logf("%d tokens in %d acquires by %d statements", got.total(), len(got.list), statements)
				if got.total() < c.least {
					t.Errorf("%d tokens were acquired, want %d or more", got.total(), c.least)
				}
				if c.statements && statements*10 > int64(len(got.list)) {
					t.Errorf("%d statements for %d acquires, want less than a tenth", statements, len(got.list))
				}
			})
		})
	}
}

func TestJ17_ADrainStopsEveryProcessWithinASecond(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		cfg := pawl.Config{Limits: []pawl.Limit{{Name: "github", Burst: 50, PerSecond: 50}}}
		var got acquisitions
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var group sync.WaitGroup
		a, b := at.settle(cfg), at.settle(cfg)
		for _, e := range []*resident{a, b} {
			group.Go(func() {
				for {
					if _, err := e.Acquire(ctx, "github", 1); err != nil {
						return // the rest of the time brings no more
					}
					got.add(1)
				}
			})
		}
		pass(2 * time.Second)
		a.must(a.Limit("github").Drain(pawl.As(t.Context(), "ann", "429"), 4*time.Second))
		drained := time.Now()
		group.Wait()
		got.check(t, 50, 50)
		after := 0
		for _, x := range got.list {
			since := x.at.Sub(drained)
			if since > time.Second && since < 4*time.Second {
				t.Fatalf("a token was there %v after a drain of 4 s", since)
			}
			if since >= 4*time.Second {
				after++
			}
		}
		if after < 150 {
			t.Errorf("%d tokens came in the 4 s after the drain, want 150 or more", after)
		}
	})
}

func TestJ17_AChangedRateIsFollowedByThoseWhoWait(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 1}},
			Limits: []pawl.Limit{{Name: "slow", Burst: 1, PerSecond: 0.001}},
		}, ignoring)
		done := make(chan time.Time, 2)
		for range 2 {
			go func() {
				_, err := w.Acquire(t.Context(), "slow", 1)
				w.must(err)
				done <- time.Now()
			}()
		}
		<-done
		pass(10 * time.Second)
		changed := time.Now()
		w.must(w.Limit("slow").Set(t.Context(), pawl.LimitSettings{PerSecond: pawl.NoLimit}))
		if came := <-done; came.Sub(changed) > 2*time.Second {
			t.Errorf("who waits hears of it after %v", came.Sub(changed))
		}
	})
}

// No rate is nothing to wait for, also while the bucket is drained: the next job passes, and is not put off until the
// drain would have ended. When there is a rate again, so is the drain.
func TestJ17_NoRateStandsOverADrain(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 5}},
			Limits: []pawl.Limit{{Name: "github", PerSecond: 10}},
		}, func(e *pawl.Engine) {
			pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error { return pawl.Acquire(ctx, "github", 1) })
		})
		limit := w.Limit("github")
		w.must(limit.Drain(t.Context(), time.Hour))
		before := w.add(1)[0]
		pass(300 * time.Millisecond)
		w.must(limit.Set(t.Context(), pawl.LimitSettings{PerSecond: pawl.NoLimit}))
		pass(300 * time.Millisecond) // a refusal as young as this counts, if its rate still holds
		during := w.add(1)[0]
		pass(time.Second)
		w.must(limit.Reset(t.Context()))
		pass(2 * time.Second)
		after := w.add(1)[0]
		pass(time.Second)
		for id, want := range map[pawl.ID]pawl.State{before: pawl.StateWaiting, during: pawl.StateDone, after: pawl.StateWaiting} {
			if s := w.state(id); s != want {
				t.Errorf("a job is %s, want %s (before %s, during %s, after %s)", s, want, before, during, after)
			}
		}
		// What was given back keeps its time, and a retry makes it due.
		w.must(limit.Undrain(t.Context()))
		pass(time.Minute)
		if s := w.state(before); s != pawl.StateWaiting {
			t.Errorf("after the drain the first job is %s", s)
		}
		scheduled := pawl.Filter{Kind: "welcome", States: []pawl.State{pawl.StateWaiting}}
		n, err := w.RetryAll(t.Context(), scheduled)
		w.must(err)
		pass(2 * time.Second)
		if s := w.state(before); n != 2 || s != pawl.StateDone {
			t.Errorf("%d were retried, and the first is %s", n, s)
		}
	})
}

// Another process ends a drain: the next job gets its token, and is not put off by what its process knew before.
func TestJ17_AnEndedDrainIsHeardByTheNextJob(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		cfg := pawl.Config{Queues: pawl.Queues{"default": {Workers: 5}}, Limits: []pawl.Limit{{Name: "github", PerSecond: 10}}}
		w := at.work(cfg, func(e *pawl.Engine) {
			pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error { return pawl.Acquire(ctx, "github", 1) })
		})
		w.must(w.Limit("github").Drain(t.Context(), time.Hour))
		pass(2 * time.Second)
		other := at.settle(pawl.Config{Limits: cfg.Limits})
		other.must(other.Limit("github").Undrain(t.Context()))
		pass(time.Second)
		id := w.add(1)[0]
		pass(time.Second)
		if s := w.state(id); s != pawl.StateDone {
			t.Errorf("the job is %s", s)
		}
	})
}

// A handler whose tokens are far away gives its job back, and gets it again when they have come. Several of them
// come one after the other.
func TestJ17_AcquireInAHandlerGivesTheJobBack(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var got acquisitions
		runs := 0
		w := at.work(pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 5}},
			Limits: []pawl.Limit{{Name: "slow", Burst: 1, PerSecond: 0.1}},
		}, func(e *pawl.Engine) {
			pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
				got.mu.Lock()
				runs++
				got.mu.Unlock()
				if err := pawl.Acquire(ctx, "slow", 1); err != nil {
					return err
				}
				got.add(1)
				return nil
			})
		})
		ids := w.add(4)
		pass(time.Second)
		waiting := 0
		for _, id := range ids {
			j, err := w.Get(t.Context(), id)
			w.must(err)
			if j.State != pawl.StateWaiting {
				continue
			}
			waiting++
			why, err := w.Why(t.Context(), id)
			w.must(err)
			if j.Used != 0 || j.Snoozes != 1 || why.Code != pawl.WhySnoozed || !strings.Contains(why.String(), "waits for limit slow") {
				t.Errorf("job %s used %d attempts, was put off %d times: %s", id, j.Used, j.Snoozes, why)
			}
		}
		if waiting != 3 {
			t.Errorf("%d jobs wait, want the three that got no token", waiting)
		}
		pass(45 * time.Second)
		for _, id := range ids {
			if s := w.state(id); s != pawl.StateDone {
				t.Errorf("job %s is %s", id, s)
			}
		}
		got.check(t, 0.1, 1)
		if runs > 10 {
			t.Errorf("4 jobs ran %d times, want about twice each", runs)
		}
		if s := w.Stats(); s.Swallowed != 0 || s.Finished[pawl.OutcomeFailed] != 0 {
			t.Errorf("%d suspensions were swallowed, %d runs failed", s.Swallowed, s.Finished[pawl.OutcomeFailed])
		}
	})
}

// Once a job is given back the outcome is fixed, whatever its handler does.
func TestJ17_ASuspensionIsSticky(t *testing.T) {
	for what, goOn := range map[string]func(ctx context.Context, e *pawl.Engine, j *pawl.Job[Welcome], err error) error{
		"nil":      func(context.Context, *pawl.Engine, *pawl.Job[Welcome], error) error { return nil },
		"an error": func(context.Context, *pawl.Engine, *pawl.Job[Welcome], error) error { return errors.New("mine") },
		"dead": func(_ context.Context, _ *pawl.Engine, _ *pawl.Job[Welcome], err error) error {
			return pawl.Dead(errors.New("x"))
		},
		"a panic": func(context.Context, *pawl.Engine, *pawl.Job[Welcome], error) error { panic("mine") },
		"its text": func(_ context.Context, _ *pawl.Engine, _ *pawl.Job[Welcome], err error) error {
			return errors.New(err.Error())
		},
		"a finish": func(ctx context.Context, e *pawl.Engine, j *pawl.Job[Welcome], _ error) error {
			err := e.Tx(context.WithoutCancel(ctx), func(ctx context.Context, tx *pawl.Tx) error { return tx.Finish(j) })
			if !errors.Is(err, pawl.ErrSuspended) {
				return fmt.Errorf("finish: %w", err)
			}
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			inTown(t, func(t *testing.T, at *town) {
				w := at.work(pawl.Config{
					Queues: pawl.Queues{"default": {Workers: 1}},
					Limits: []pawl.Limit{{Name: "slow", Burst: 1, PerSecond: 0.01}},
				}, func(e *pawl.Engine) {
					pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
						err := pawl.Acquire(ctx, "slow", 1)
						if !errors.Is(err, pawl.ErrSuspended) || !pawl.IsSnooze(err) || !errors.Is(context.Cause(ctx), pawl.ErrSuspended) {
							t.Errorf("got %v, and the context's cause is %v", err, context.Cause(ctx))
						}
						if again := pawl.Acquire(ctx, "slow", 1); again != err {
							t.Errorf("a later acquire returns %v", again)
						}
						return goOn(ctx, e, j, err)
					})
				})
				_, err := w.Acquire(t.Context(), "slow", 1)
				w.must(err)
				id := w.add(1)[0]
				pass(5 * time.Second)
				j, err := w.Get(t.Context(), id)
				w.must(err)
				if j.State != pawl.StateWaiting || j.Used != 0 || j.Snoozes != 1 || time.Until(j.Due) < time.Minute {
					t.Errorf("the job is %s, used %d, put off %d times, due in %v", j.State, j.Used, j.Snoozes, time.Until(j.Due))
				}
				if n := w.Stats().Swallowed; n != 1 || !strings.Contains(at.log.String(), "went on after its job was given back") {
					t.Errorf("%d swallowed suspensions were counted; the log has %s", n, at.log)
				}
			})
		})
	}
}

// A process that goes idle, or ends, leaves what it did not use to the others.
func TestJ17_UnusedTokensGoBack(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		cfg := pawl.Config{Limits: []pawl.Limit{{Name: "github", Burst: 40, PerSecond: 1}}}
		a, b := at.settle(cfg), at.settle(cfg)
		begin := time.Now()
		for range 10 {
			_, err := a.Acquire(t.Context(), "github", 1)
			a.must(err)
		}
		pass(200 * time.Millisecond)
		_, err := b.Acquire(t.Context(), "github", 15)
		b.must(err)
		a.leave()
		_, err = b.Acquire(t.Context(), "github", 15)
		b.must(err)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("40 of 40 tokens took %v", took)
		}
		at.open = slices.DeleteFunc(at.open, func(r *resident) bool { return r == a })
	})
}
