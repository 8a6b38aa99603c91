package runner_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func TestJ11_PanicIsAFailedRunWithItsStack(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { panic("boom") })
		id := l.add(1, func(d *job.Draft) { d.Attempts = 1 }, p)[0]
		synctest.Wait()
		j := l.expect(id, job.Dead, 1, 0)
		if len(j.Failures.List()) != 1 || j.Failures.List()[0].Message != "panic: boom" || !strings.Contains(j.Failures.List()[0].Stack, "fault_test.go") {
			t.Errorf("failures %+v, want the panic with its stack", j.Failures)
		}
		if s := p.Stats(); s.Panics != 1 || s.Running != 0 {
			t.Errorf("stats %+v", s)
		}
		p.stop()
	})
}

func TestJ11_HandlerThatEndsItsGoroutineHasFailed(t *testing.T) {
	inLab(t, func(l *lab) {
		exit := true
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			if exit {
				exit = false
				runtime.Goexit() // as FailNow does
			}
			return succeed
		})
		ids := l.add(3, nil, p)
		after(time.Second)
		j := l.expect(ids[0], job.Done, 1, 0)
		if len(j.Failures.List()) != 1 || !strings.Contains(j.Failures.List()[0].Message, "Goexit") {
			t.Errorf("failures %+v", j.Failures)
		}
		l.expect(ids[1], job.Done, 0, 0) // the slot is not lost
		l.expect(ids[2], job.Done, 0, 0)
		p.stop()
	})
}

func TestP8_PanicCostsOneRunOnly(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(4, func(_ context.Context, t *runner.Task) job.Outcome {
			if t.Job.Priority == 1 {
				panic(errors.New("poison"))
			}
			return succeed
		})
		poison := l.add(5, func(d *job.Draft) { d.Priority, d.Attempts = 1, 2 })
		good := l.add(50, nil, p)
		after(time.Second)
		for _, id := range poison {
			l.expect(id, job.Dead, 2, 0)
		}
		for _, id := range good {
			l.expect(id, job.Done, 0, 0)
		}
		p.stop()
	})
}

func TestP8_BadEndDoesNotHoldUpTheOthers(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(10, func(_ context.Context, t *runner.Task) job.Outcome {
			time.Sleep(time.Millisecond)
			return job.Outcome{Kind: job.Succeeded, Result: t.Job.Args}
		})
		p.faults.set(func(f *faults) {
			f.ends = func(ends []job.End) error {
				for _, e := range ends {
					if string(e.Result) == "bad" {
						return errors.New("value is not storable")
					}
				}
				return nil
			}
		})
		bad := l.add(1, func(d *job.Draft) { d.Args, d.Attempts = []byte("bad"), 1 })[0]
		good := l.add(30, nil, p)
		after(10 * time.Second)
		for _, id := range good {
			l.expect(id, job.Done, 0, 0)
		}
		j := l.expect(bad, job.Dead, 1, 0)
		if len(j.Failures.List()) != 1 || !strings.Contains(j.Failures.List()[0].Message, "value is not storable") {
			t.Errorf("failures %+v, want why it was not stored", j.Failures)
		}
		p.stop()
	})
}

func TestP8_EndThatIsRefusedInEveryFormGoesBack(t *testing.T) {
	inLab(t, func(l *lab) {
		bad := job.NewID()
		p := l.run(2, func(context.Context, *runner.Task) job.Outcome { return succeed })
		p.faults.set(func(f *faults) {
			f.ends = func(ends []job.End) error {
				for _, e := range ends {
					if e.ID == bad {
						return errors.New("row is cursed")
					}
				}
				return nil
			}
		})
		l.add(1, func(d *job.Draft) { d.ID = bad }, p)
		for range 40 { // others are applied meanwhile: the fault is its own
			l.add(1, nil, p)
			after(time.Second)
		}
		s := p.Stats()
		if s.Unkept == 0 || s.Returned == 0 {
			t.Errorf("unkept %d, returned %d, want the job given back by the report of what is held", s.Unkept, s.Returned)
		}
		p.faults.set(func(f *faults) { f.ends = nil })
		after(time.Minute)
		if j := l.get(bad); j.State != job.Done || j.Lost != 0 {
			t.Errorf("job is %s, lost %d times, want done", j.State, j.Lost)
		}
		p.stop()
	})
}

func TestP8_PanickingHookAndBackoffCostNothingElse(t *testing.T) {
	inLab(t, func(l *lab) {
		runs := 0
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			if runs++; runs == 1 {
				return fail
			}
			return succeed
		}, func(c *runner.Config) {
			c.Kinds[0].Backoff = func(job.FailedAttempt) time.Duration { panic("backoff") }
			c.Hooks.Finish = func(runner.Finished) { panic("hook") }
		})
		id := l.add(1, nil, p)[0]
		after(10 * time.Second) // the default backoff of at most 1 s instead
		l.expect(id, job.Done, 1, 0)
		if log := l.log.String(); !strings.Contains(log, "backoff function panicked") || !strings.Contains(log, "finish hook panicked") {
			t.Error("the panics were not logged")
		}
		p.stop()
	})
}

func TestJ13_AttemptTimeoutFailsTheRun(t *testing.T) {
	inLab(t, func(l *lab) {
		var cause error
		p := l.run(1, func(ctx context.Context, _ *runner.Task) job.Outcome {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return job.Outcome{Kind: job.Failed, Message: ctx.Err().Error()}
		}, func(c *runner.Config) { c.Kinds[0].Timeout = 3 * time.Second })
		begin := time.Now()
		id := l.add(1, func(d *job.Draft) { d.Attempts = 1 }, p)[0]
		after(3*time.Second - time.Nanosecond)
		l.expect(id, job.Running, 0, 0)
		after(time.Nanosecond)
		j := l.expect(id, job.Dead, 1, 0)
		if cause != job.ErrTimeout || time.Since(begin) != 3*time.Second {
			t.Errorf("cause %v after %v", cause, time.Since(begin))
		}
		if want := "pawl: attempt timed out after 3s: context deadline exceeded"; j.Failures.List()[0].Message != want {
			t.Errorf("message %q, want %q", j.Failures.List()[0].Message, want)
		}
		own := l.add(1, func(d *job.Draft) { d.Attempts, d.Timeout = 1, time.Second }, p)[0]
		after(time.Second) // the job's own timeout comes before the kind's
		l.expect(own, job.Dead, 1, 0)
		p.stop()
	})
}

func TestJ13_DeadlineWhileRunningIsFinal(t *testing.T) {
	inLab(t, func(l *lab) {
		var cause error
		p := l.run(1, func(ctx context.Context, _ *runner.Task) job.Outcome {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return job.Outcome{Kind: job.Failed, Message: "interrupted"}
		}, func(c *runner.Config) { c.Timeout = time.Hour })
		id := l.add(1, func(d *job.Draft) { d.Deadline = time.Now().Add(5 * time.Second) }, p)[0]
		after(6 * time.Second)
		if j := l.expect(id, job.Dead, 1, 0); j.Reason != "its deadline passed" {
			t.Errorf("reason %q", j.Reason)
		}
		if cause != job.ErrDeadline {
			t.Errorf("cause %v", cause)
		}
		p.stop()
	})
}

func TestJ13_HandlerThatIgnoresItsContextIsReportedAsStuck(t *testing.T) {
	inLab(t, func(l *lab) {
		release := make(chan struct{})
		p := l.run(2, func(_ context.Context, t *runner.Task) job.Outcome {
			if t.Job.Priority == 1 {
				ignoreEverything(release)
			}
			return succeed
		}, func(c *runner.Config) { c.Timeout = 5 * time.Second })
		id := l.add(1, func(d *job.Draft) { d.Priority = 1 }, p)[0]
		after(14 * time.Second)
		if stuck := p.Stats().Stuck; len(stuck) != 0 {
			t.Errorf("stuck after 9 s of a cancelled context: %v", stuck)
		}
		after(3 * time.Second)
		s := p.Stats()
		if len(s.Stuck) != 1 || s.Stuck[0].ID != id || s.Running != 1 {
			t.Fatalf("stats %+v, want the handler as stuck and its slot taken", s)
		}
		if log := l.log.String(); !strings.Contains(log, id.String()) || !strings.Contains(log, "ignoreEverything") {
			t.Error("the log does not show where the handler is stuck")
		}
		others := l.add(5, nil, p)
		after(time.Second)
		for _, id := range others {
			l.expect(id, job.Done, 0, 0)
		}
		close(release)
		after(time.Second)
		l.expect(id, job.Done, 0, 0) // late, and true all the same
		if s := p.Stats(); len(s.Stuck) != 0 || s.Running != 0 {
			t.Errorf("stats %+v", s)
		}
		p.stop()
	})
}

//go:noinline
func ignoreEverything(release chan struct{}) { <-release }

func TestP8_ConfigFaultsAreAllReported(t *testing.T) {
	_, err := runner.New(runner.Config{
		Queues:       []runner.QueueConfig{{Name: "a,b", Workers: 0}, {Name: "q", Workers: 1, Total: -1, Aging: -1}, {Name: "q", Workers: 1}},
		Kinds:        []runner.Kind{{Name: ""}, {Name: "k", Version: -1, Timeout: -1}, {Name: "k"}},
		Capabilities: []string{"a b"},
		Beat:         time.Second, LostAfter: 2 * time.Second, Grace: -1,
	})
	if !errors.Is(err, job.ErrInvalid) {
		t.Fatalf("New: %v", err)
	}
	for _, part := range []string{
		"store", `queue "a,b"`, "workers of queue a,b 0", "total of queue q -1", "aging of queue q", `queue "q": is given twice`,
		"kind", `handler of kind "k"`, "version of kind k -1", "timeout of kind k", `kind "k": has two handlers`, `capability "a b"`,
		"lost after 2s: must be 7s or more", "grace -1ns",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %q:\n%v", part, err)
		}
	}
}

// An end whose job an open transaction holds waits aside, is still this worker's,
// and is stored when the transaction ends.
func TestP8_AnEndThatIsHeldHoldsUpNoOther(t *testing.T) {
	inLab(t, func(l *lab) {
		var told []job.ID
		p := l.run(2, func(context.Context, *runner.Task) job.Outcome { return succeed },
			func(c *runner.Config) {
				c.Hooks.Finish = func(f runner.Finished) { told = append(told, f.Task.Job.ID) }
			})
		held := map[job.ID]bool{}
		p.faults.set(func(f *faults) { f.held = func(id job.ID) bool { return held[id] } })
		add := func() job.ID { return l.add(1, nil, p)[0] }
		draft := job.Draft{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 5}
		held[draft.ID] = true
		if _, err := l.store.Enqueue(l.t.Context(), []job.Draft{draft}); err != nil {
			t.Fatal(err)
		}
		p.hub.Ready(store.Hint{Subject: store.SubjectQueue, Name: "q"})
		after(time.Second)
		for range 3 {
			id := add()
			after(0)
			l.expect(id, job.Done, 0, 0)
		}
		after(2 * time.Minute) // reports of what is held go by
		if j := l.expect(draft.ID, job.Running, 0, 0); j.Run != 1 {
			t.Errorf("run %d", j.Run)
		}
		if s := p.Stats(); s.Ending != 1 || s.Running != 0 || len(told) != 3 {
			t.Errorf("ending %d, running %d, told %d; want 1, 0, 3", s.Ending, s.Running, len(told))
		}
		p.faults.set(func(*faults) { delete(held, draft.ID) })
		after(time.Second)
		l.expect(draft.ID, job.Done, 0, 0)
		if len(told) != 4 || told[3] != draft.ID {
			t.Errorf("told %v", told)
		}
		p.stop()
	})
}

// A stop does not wait for a transaction that does not end, and says so.
func TestP7_AStopNamesAnEndThatIsHeld(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(2, func(context.Context, *runner.Task) job.Outcome { return succeed })
		p.faults.set(func(f *faults) { f.held = func(job.ID) bool { return true } })
		id := l.add(1, nil, p)[0]
		after(time.Second)
		p.cancel()
		if err := <-p.ended; !errors.Is(err, runner.ErrNotFinished) || !strings.Contains(err.Error(), id.String()) {
			t.Errorf("run: %v", err)
		}
		l.expect(id, job.Waiting, 0, 0) // given back with the rest
	})
}

// inPortions is a store that commits the first ends of a call and fails with the
// others, as long as fails says so.
type inPortions struct {
	store.Store
	fails func() error
	sent  map[job.ID]int
}

func (s *inPortions) Finish(ctx context.Context, w job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	for _, e := range ends {
		s.sent[e.ID]++
	}
	if err := s.fails(); err != nil && len(ends) > 1 {
		verdicts, first := s.Store.Finish(ctx, w, ends[:1])
		return verdicts, errors.Join(first, err)
	}
	return s.Store.Finish(ctx, w, ends)
}

// What a store has committed of a call is settled, whatever becomes of the rest.
func TestJ32_EndsThatWereAnsweredAreNotSentAgain(t *testing.T) {
	for name, cause := range map[string]error{"unknown": job.ErrOutcomeUnknown, "unavailable": store.ErrUnavailable, "a bad row": errors.New("a trigger says no")} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				fails := 2
				s := &inPortions{sent: map[job.ID]int{}, fails: func() error {
					if fails--; fails >= 0 {
						return cause
					}
					return nil
				}}
				begin := make(chan struct{})
				told := map[job.ID]int{}
				p := l.run(4, func(context.Context, *runner.Task) job.Outcome {
					<-begin
					return succeed
				}, func(c *runner.Config) {
					s.Store, c.Store = c.Store, s
					c.Hooks.Finish = func(f runner.Finished) { told[f.Task.Job.ID]++ }
				})
				ids := l.add(4, nil, p)
				after(time.Second)
				close(begin)
				after(time.Minute)
				p.stop()
				total := 0
				for _, id := range ids {
					l.expect(id, job.Done, 0, 0)
					total += s.sent[id]
					if told[id] != 1 {
						t.Errorf("the hook was told %d times of an end", told[id])
					}
				}
				if st := p.Stats(); st.Unclear+st.Refused != 0 {
					t.Errorf("counted %+v", st)
				}
				if fails >= 0 || total > 4+3+2+1 { // each call of four, three … settles one of them at least
					t.Errorf("%d ends were sent for 4 runs, and %d faults were not met", total, max(fails, 0))
				}
			})
		})
	}
}
