package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// cut takes a process off the store, as a broken network or SIGSTOP would.
func (p *process) cut() {
	p.faults.set(func(f *faults) { f.before = func(string) error { return store.ErrUnavailable } })
}

func (p *process) heal() { p.faults.set(func(f *faults) { f.before, f.after = nil, nil }) }

func TestP2_LostWorkersLateSuccessIsRefusedAndCounted(t *testing.T) {
	inLab(t, func(l *lab) {
		var cause error
		release := make(chan struct{})
		first := l.run(1, func(ctx context.Context, _ *runner.Task) job.Outcome {
			<-release
			cause = context.Cause(ctx)
			return job.Outcome{Kind: job.Succeeded, Result: []byte("first")}
		})
		id := l.add(1, nil, first)[0]
		after(time.Second)
		second := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			return job.Outcome{Kind: job.Succeeded, Result: []byte("second")}
		})
		after(time.Minute) // second has been steady for long enough to judge others
		first.cut()
		after(time.Minute)
		if j := l.expect(id, job.Done, 0, 1); j.Run != 2 {
			t.Errorf("run %d, want the second", j.Run)
		}
		first.heal()
		close(release)
		after(10 * time.Second)
		if cause != job.ErrLeaseLost {
			t.Errorf("cause %v, want ErrLeaseLost", cause)
		}
		if j := l.get(id); string(j.Result) != "second" {
			t.Errorf("result %q: a lost lease overwrote the new owner", j.Result)
		}
		if s := first.Stats(); s.Refused != 1 || s.LeasesLost != 1 || s.Registered != 2 {
			t.Errorf("refused %d, leases lost %d, registered %d; want 1, 1, 2", s.Refused, s.LeasesLost, s.Registered)
		}
		again := l.add(4, nil, first, second) // the first goes on under its new name
		after(time.Second)
		for _, id := range again {
			l.expect(id, job.Done, 0, 0)
		}
		second.stop()
		first.stop()
	})
}

func TestJ12_WorkerCancelsItsHandlersBeforeTheFleetMay(t *testing.T) {
	inLab(t, func(l *lab) {
		var cancelled time.Time
		p := l.run(1, func(ctx context.Context, _ *runner.Task) job.Outcome {
			<-ctx.Done()
			cancelled = time.Now()
			return fail
		})
		id := l.add(1, nil, p)[0]
		after(7 * time.Second)
		last := p.Stats().LastBeat
		p.cut()
		after(40 * time.Second)
		if got := cancelled.Sub(last); got != 25*time.Second {
			t.Errorf("cancelled %v after the last beat was sent, want 25 s", got)
		}
		if s := p.Stats(); s.Healthy || s.LeasesLost != 1 {
			t.Errorf("stats %+v", s)
		}
		p.heal()
		after(10 * time.Second)
		// Nobody declared it lost, so its end was accepted: given back, and run again.
		if j := l.expect(id, job.Running, 0, 0); j.Run != 2 {
			t.Errorf("run %d, want 2", j.Run)
		}
		p.stop()
	})
}

func TestJ12_RescuedRunIsRunAgain(t *testing.T) {
	inLab(t, func(l *lab) {
		second := l.run(2, func(context.Context, *runner.Task) job.Outcome { return succeed },
			func(c *runner.Config) { c.Queues[0].Name = "other" })
		after(time.Minute)
		first := l.run(2, func(ctx context.Context, _ *runner.Task) job.Outcome { <-ctx.Done(); return fail })
		ids := l.add(2, nil, first)
		after(time.Second)
		first.cut()
		begin := time.Now()
		for l.get(ids[0]).State == job.Running {
			after(100 * time.Millisecond)
		}
		// Last beat at most 5 s before the cut; 30 s; at most 1.5 s for the keeper's round.
		if took := time.Since(begin); took < 25*time.Second || took > 31600*time.Millisecond {
			t.Errorf("rescued after %v", took)
		}
		for _, id := range ids {
			// It died before a beat could say that they had begun. From now on that is
			// said first: see TestJ12_BeginningOfALostJobIsCommittedBeforeItBegins.
			if j := l.expect(id, job.Waiting, 0, 0); j.Rescues != 1 {
				t.Errorf("rescued %d times, want 1", j.Rescues)
			}
		}
		first.heal()
		second.stop()
		first.stop()
	})
}

func TestJ32_OutageOf90SecondsLosesAndDoublesNothing(t *testing.T) {
	inLab(t, func(l *lab) {
		var mu sync.Mutex
		now := map[job.ID]int{}
		doubled := false
		work := func(ctx context.Context, t *runner.Task) job.Outcome {
			mu.Lock()
			now[t.Job.ID]++
			doubled = doubled || now[t.Job.ID] > 1
			mu.Unlock()
			defer func() { mu.Lock(); now[t.Job.ID]--; mu.Unlock() }()
			select {
			case <-ctx.Done():
				return job.Outcome{Kind: job.Failed, Message: context.Cause(ctx).Error()}
			case <-time.After(3 * time.Minute):
				return succeed
			}
		}
		var crew []*process
		for range 3 {
			crew = append(crew, l.run(12, work))
		}
		ids := l.add(12, nil, crew...)
		after(2 * time.Minute)
		for _, p := range crew {
			p.cut()
		}
		after(90 * time.Second)
		for _, p := range crew {
			p.heal()
		}
		after(20 * time.Minute)
		for _, id := range ids {
			l.expect(id, job.Done, 0, 0)
		}
		if doubled {
			t.Error("a job ran twice at the same time")
		}
		for _, p := range crew {
			if s := p.Stats(); s.Refused != 0 || s.Registered != 1 {
				t.Errorf("refused %d, registered %d: the outage lost the fleet", s.Refused, s.Registered)
			}
			p.stop()
		}
	})
}

// Any answer may be lost: after the call was made, or before it.
func TestJ32_LostAnswersLoseAndDoubleNothing(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inLab(t, func(l *lab) {
				var ran atomic.Int64
				p := l.run(5, func(context.Context, *runner.Task) job.Outcome {
					ran.Add(1)
					time.Sleep(10 * time.Millisecond) // virtual
					return succeed
				})
				dice := rand.New(rand.NewPCG(seed, 0))
				var mu sync.Mutex
				missed := false // a beat; five in a row would lose the lease, and rightly so
				unlucky := func(method string) bool {
					mu.Lock()
					defer mu.Unlock()
					bad := dice.IntN(3) == 0
					if method == "Beat" {
						bad = bad && !missed
						missed = bad
					}
					return bad
				}
				p.faults.set(func(f *faults) {
					f.before = func(method string) error {
						if method != "Beat" && unlucky(method) {
							return store.ErrUnavailable
						}
						return nil
					}
					f.after = func(method string) error {
						if unlucky(method) {
							return fmt.Errorf("%s: %w", method, job.ErrOutcomeUnknown)
						}
						return nil
					}
				})
				ids := l.add(200, nil, p)
				after(3 * time.Minute)
				p.heal()
				after(time.Minute)
				for _, id := range ids {
					l.expect(id, job.Done, 0, 0)
				}
				if ran.Load() != 200 {
					t.Errorf("handlers ran %d times for 200 jobs", ran.Load())
				}
				if s := p.Stats(); s.Refused != 0 || s.LeasesLost != 0 {
					t.Errorf("refused %d, leases lost %d: a lost answer passed for a lost lease", s.Refused, s.LeasesLost)
				}
				p.stop()
			})
		})
	}
}

// When the claim and its repeat are both lost, ReportRuns brings the jobs back.
func TestJ32_ClaimThatIsNeverAnsweredGoesBackFreeOfCharge(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(2, func(context.Context, *runner.Task) job.Outcome { return succeed })
		lost := 0
		p.faults.set(func(f *faults) {
			f.after = func(method string) error {
				if method == "Claim" && lost < 2 {
					lost++
					return job.ErrOutcomeUnknown
				}
				return nil
			}
		})
		ids := l.add(2, nil, p)
		after(5 * time.Second)
		for _, id := range ids {
			l.expect(id, job.Done, 0, 0)
		}
		if s := p.Stats(); s.Returned != 2 {
			t.Errorf("returned %d, want the 2 jobs of the lost claim", s.Returned)
		}
		p.stop()
	})
}

// An error that says nothing of what was done may come after jobs were leased:
// reading them, for instance. They are asked for again, not left leased to nobody.
func TestP8_ClaimThatFailsAfterItLeasedIsAskedForAgain(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(2, func(context.Context, *runner.Task) job.Outcome { return succeed })
		failed := false
		p.faults.set(func(f *faults) {
			f.after = func(method string) error {
				if method == "Claim" && !failed {
					failed = true
					return errors.New("one row of the answer cannot be read")
				}
				return nil
			}
		})
		ids := l.add(2, nil, p)
		after(5 * time.Second)
		for _, id := range ids {
			if j := l.expect(id, job.Done, 0, 0); j.Run != 1 {
				t.Errorf("run %d, want the first", j.Run)
			}
		}
		if s := p.Stats(); s.Returned != 0 {
			t.Errorf("returned %d, want none", s.Returned)
		}
		p.stop()
	})
}

func TestJ32_StoreClockStepsDoNoHarm(t *testing.T) {
	for _, step := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		t.Run(step.String(), func(t *testing.T) {
			inLab(t, func(l *lab) {
				clock := l.store.(interface{ SetClockOffset(time.Duration) })
				work := func(ctx context.Context, _ *runner.Task) job.Outcome {
					select {
					case <-ctx.Done():
						return fail
					case <-time.After(2 * time.Minute):
						return succeed
					}
				}
				first, second := l.run(4, work), l.run(4, work)
				ids := l.add(4, nil, first, second)
				after(time.Minute)
				clock.SetClockOffset(step)
				late := l.add(2, nil, first, second)
				after(15 * time.Minute)
				for _, id := range append(ids, late...) {
					if j := l.get(id); j.State != job.Done || j.Run != 1 || j.Used != 0 || j.Lost != 0 {
						t.Errorf("job is %s after %d runs, %d attempts used, %d lost", j.State, j.Run, j.Used, j.Lost)
					}
				}
				second.stop()
				first.stop()
			})
		})
	}
}

// The clock is set forward; one worker's next beat is stored, and its answer is on
// its way while its keeper looks for the late. It cannot know of the step yet.
func TestJ32_AnswerOfTheFirstBeatAfterAStepIsSlow(t *testing.T) {
	inLab(t, func(l *lab) {
		work := func(ctx context.Context, _ *runner.Task) job.Outcome { <-ctx.Done(); return fail }
		one := func(c *runner.Config) { c.Queues[0].Total = 1 } // so that the second claims nothing, and only beats
		late := l.run(1, work, one)
		id := l.add(1, nil, late)[0]
		after(time.Second)
		hasty := l.run(1, work, one)
		after(time.Minute)
		slow := func(method string) error {
			if method == "Beat" {
				time.Sleep(4 * time.Second) // stimulus: two rounds of the keeper
			}
			return nil
		}
		hasty.faults.set(func(f *faults) { f.after = slow })
		late.faults.set(func(f *faults) { f.before = slow })
		l.store.(interface{ SetClockOffset(time.Duration) }).SetClockOffset(10 * time.Minute)
		after(20 * time.Second)
		l.expect(id, job.Running, 0, 0)
		for _, p := range []*process{hasty, late} {
			if s := p.Stats(); s.Registered != 1 || s.LeasesLost != 0 {
				t.Errorf("registered %d times, %d leases lost", s.Registered, s.LeasesLost)
			}
			p.faults.set(func(f *faults) { f.before, f.after = nil, nil })
		}
		hasty.stop()
		late.stop()
	})
}

// The clock is set forward and back again between two beats. Only claims have met
// it, and a job that was accepted meanwhile.
func TestJ32_AClockSetTwiceBetweenTwoBeats(t *testing.T) {
	inLab(t, func(l *lab) {
		clock := l.store.(interface{ SetClockOffset(time.Duration) })
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			time.Sleep(time.Second) // stimulus: a run that outlasts the glitch
			return succeed
		})
		after(500 * time.Millisecond) // since the first beat; the next comes after 5 s
		clock.SetClockOffset(10 * time.Minute)
		ids := l.add(2, nil, p)
		after(100 * time.Millisecond)
		l.expect(ids[0], job.Running, 0, 0)
		clock.SetClockOffset(0)
		after(10 * time.Second)
		for _, id := range ids {
			l.expect(id, job.Done, 0, 0)
		}
		p.stop()
	})
}

// A job that was ready when the store's clock was set back starts soon, not when
// the clock has come as far again. One that is scheduled keeps its time.
func TestJ32_WhatWasReadyRunsSoonAfterTheClockIsSetBack(t *testing.T) {
	inLab(t, func(l *lab) {
		var ran atomic.Int64
		p := l.run(1, func(_ context.Context, t *runner.Task) job.Outcome {
			ran.Add(1)
			time.Sleep(time.Second) // virtual
			return succeed
		})
		l.add(20, nil, p)
		scheduled := l.add(1, func(d *job.Draft) { d.In = time.Minute }, p)[0]
		after(5 * time.Second)
		l.store.(interface{ SetClockOffset(time.Duration) }).SetClockOffset(-10 * time.Minute)
		after(30 * time.Second)
		if n := ran.Load(); n != 20 {
			t.Errorf("%d of 20 jobs ran in half a minute", n)
		}
		l.expect(scheduled, job.Waiting, 0, 0)
		after(11 * time.Minute)
		l.expect(scheduled, job.Done, 0, 0)
		p.stop()
	})
}

// The step came while nobody was there to notice: a machine that boots with a
// wrong clock. The beats of those who died with it show that it was later.
func TestJ32_AStepBackDuringARestartIsNoticed(t *testing.T) {
	inLab(t, func(l *lab) {
		died, err := l.store.Register(l.t.Context(), store.Worker{Label: "died", Queues: []string{"q"}, LostAfter: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.store.Beat(l.t.Context(), store.Beat{Worker: died}); err != nil {
			t.Fatal(err)
		}
		ids := l.add(3, nil)
		l.store.(interface{ SetClockOffset(time.Duration) }).SetClockOffset(-10 * time.Minute)
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome { return succeed })
		after(10 * time.Second)
		for _, id := range ids {
			l.expect(id, job.Done, 0, 0)
		}
		p.stop()
	})
}

// Who died shortly before the clock was set back is not taken for alive until it
// has come as far again.
func TestJ32_AWorkerThatDiedBeforeTheStepIsLostSoonAfterIt(t *testing.T) {
	inLab(t, func(l *lab) {
		orphan := l.add(1, nil)[0]
		died, err := l.store.Register(l.t.Context(), store.Worker{Label: "died", Queues: []string{"q"}, LostAfter: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		offer := job.Offer{Kinds: map[string]int{l.get(orphan).Kind: 0}}
		claim := store.Claim{Worker: died, Seq: 1, Offer: offer, Queues: []store.QueueClaim{{Queue: l.get(orphan).Queue, Limit: 1, Start: 1}}}
		if c, err := l.store.Claim(l.t.Context(), claim); err != nil || len(c.Jobs) != 1 {
			t.Fatal(c, err)
		}
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome { return succeed })
		after(10 * time.Second)
		l.store.(interface{ SetClockOffset(time.Duration) }).SetClockOffset(-10 * time.Minute)
		after(2 * time.Minute)
		if j := l.expect(orphan, job.Done, 0, 0); j.Rescues != 1 {
			t.Errorf("rescued %d times, want 1", j.Rescues)
		}
		p.stop()
	})
}

func TestJ12_SuspectRunsAlone(t *testing.T) {
	inLab(t, func(l *lab) {
		suspect := l.suspects(1)[0]
		var now atomic.Int64
		var beside, ran int64
		p := l.run(4, func(_ context.Context, t *runner.Task) job.Outcome {
			n := now.Add(1)
			defer now.Add(-1)
			if t.Job.ID == suspect {
				beside = n - 1
				time.Sleep(2 * time.Second) // virtual
				beside = max(beside, now.Load()-1)
				ran++
				return succeed
			}
			time.Sleep(500 * time.Millisecond) // virtual
			return succeed
		})
		others := l.add(12, nil, p)
		after(20 * time.Second)
		if j := l.get(suspect); j.State != job.Done || ran != 1 {
			t.Fatalf("suspect is %s, ran %d times", j.State, ran)
		}
		if beside != 0 {
			t.Errorf("%d other handlers ran beside the suspect", beside)
		}
		for _, id := range others {
			l.expect(id, job.Done, 0, 0)
		}
		if s := p.Stats(); s.Alone != 1 {
			t.Errorf("alone %d, want 1", s.Alone)
		}
		p.stop()
	})
}

func TestJ12_SuspectThatCannotBeAloneIsPutOff(t *testing.T) {
	inLab(t, func(l *lab) {
		long := make(chan struct{})
		suspectRan := false
		var suspect job.ID
		p := l.run(4, func(_ context.Context, t *runner.Task) job.Outcome {
			if t.Job.ID == suspect {
				suspectRan = true
				return succeed
			}
			if t.Job.Priority == 1 {
				<-long
			}
			return succeed
		})
		l.add(1, func(d *job.Draft) { d.Priority = 1 }, p)
		after(time.Second)
		suspect = l.suspects(1)[0]
		p.hub.Ready(store.Hint{})
		after(time.Second)
		short := l.add(3, nil, p)
		after(11 * time.Second)
		for _, id := range short {
			l.expect(id, job.Done, 0, 0) // the wait for the others is bounded
		}
		l.expect(suspect, job.Waiting, 0, 2)
		close(long)
		after(40 * time.Second)
		l.expect(suspect, job.Done, 0, 2)
		if !suspectRan {
			t.Error("the suspect did not run")
		}
		p.stop()
	})
}

func TestP2_AnswerOfAFinishLostIsNotALostLease(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return succeed })
		lost := false
		p.faults.set(func(f *faults) {
			f.after = func(method string) error {
				if method == "Finish" && !lost {
					lost = true
					return job.ErrOutcomeUnknown
				}
				return nil
			}
		})
		id := l.add(1, nil, p)[0]
		after(time.Second)
		l.expect(id, job.Done, 0, 0)
		if s := p.Stats(); s.Refused != 0 || s.Unclear != 1 {
			t.Errorf("refused %d, unclear %d; want 0, 1", s.Refused, s.Unclear)
		}
		p.stop()
	})
}

func TestP2_RunTakenAwayIsFoundByTheReportOfWhatIsHeld(t *testing.T) {
	inLab(t, func(l *lab) {
		var cause error
		p := l.run(1, func(ctx context.Context, t *runner.Task) job.Outcome {
			if t.Job.Run > 1 {
				return succeed
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return fail
		})
		id := l.add(1, nil, p)[0]
		after(time.Second)
		// As if the row had been restored from elsewhere: the run ends behind the runner's back.
		if v, err := l.store.Finish(l.t.Context(), p.Member().Worker(), []job.End{{ID: id, Run: 1, To: job.Waiting}}); err != nil || v[0] != job.Applied {
			t.Fatal(v, err)
		}
		after(time.Minute)
		if cause != job.ErrLeaseLost {
			t.Errorf("cause %v", cause)
		}
		l.expect(id, job.Done, 0, 0)
		p.stop()
	})
}

// TestJ12_RegistrationIsToldEachTime has the hook by which a keeper's first round comes at once: by then the worker is
// registered and has beaten, so that the keeper can speak for it.
func TestJ12_RegistrationIsToldEachTime(t *testing.T) {
	inLab(t, func(l *lab) {
		var told []job.WorkerID
		var fresh []bool
		registered := make(chan struct{}, 2)
		p := l.run(1, waits, func(c *runner.Config) { c.Registered = func() { registered <- struct{}{} } })
		note := func() {
			<-registered
			worker, beat, _ := p.Member().Steady()
			told, fresh = append(told, worker), append(fresh, !beat.IsZero() && p.Stats().Healthy)
		}
		note()
		after(time.Minute)
		if _, err := l.store.MarkDead(l.t.Context(), []job.WorkerID{p.Member().Worker()}); err != nil {
			t.Fatal(err)
		}
		note()
		if len(told) != 2 || told[0] == told[1] || told[0] == 0 || told[1] != p.Member().Worker() || !fresh[0] || !fresh[1] {
			t.Errorf("told of workers %v, which had beaten: %v; want both of its registrations", told, fresh)
		}
		p.stop()
	})
}
