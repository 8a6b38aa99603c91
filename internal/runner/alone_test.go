package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// suspects are waiting jobs that were lost with their process so often that they
// are to run alone.
func (l *lab) suspects(n int) []job.ID {
	l.t.Helper()
	return l.lost(n, job.SuspectLost)
}

// lost are waiting jobs that were lost with their process some times.
func (l *lab) lost(n, times int) []job.ID {
	l.t.Helper()
	ctx := l.t.Context()
	ids := l.add(n, func(d *job.Draft) { d.Priority = 1 }) // no time passes, so nobody else claims them
	offer := job.Offer{Kinds: map[string]int{"k": 0}}
	for range times {
		w, err := l.store.Register(ctx, store.Worker{Label: "doomed", Queues: []string{"q"}, Offer: offer, LostAfter: time.Minute})
		if err != nil {
			l.t.Fatal(err)
		}
		claimed, err := l.store.Claim(ctx, store.Claim{Worker: w, Seq: 1, Offer: offer, Queues: []store.QueueClaim{{Queue: "q", Limit: n, Start: n}}})
		if err != nil || len(claimed.Jobs) != n {
			l.t.Fatalf("%d jobs claimed, %v", len(claimed.Jobs), err)
		}
		for _, j := range claimed.Jobs {
			if _, err := l.store.Note(ctx, w, []store.Note{{RunRef: store.RunRef{ID: j.ID, Run: j.Run}, Begun: true}}); err != nil {
				l.t.Fatal(err)
			}
		}
		if err := l.store.Deregister(ctx, w); err != nil {
			l.t.Fatal(err)
		}
		if rescued, err := l.store.Rescue(ctx, n); err != nil || rescued.Waiting != n {
			l.t.Fatalf("rescue: %+v, %v", rescued, err)
		}
	}
	return ids
}

// What a dead process held comes back all at once. Each of these jobs runs
// alone, but one after the other, not one per delay.
func TestJ12_ManySuspectsRunOneAfterTheOther(t *testing.T) {
	inLab(t, func(l *lab) {
		suspects := l.suspects(20)
		begin := time.Now()
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome {
			time.Sleep(100 * time.Millisecond) // virtual
			return succeed
		})
		after(10 * time.Second)
		for _, id := range suspects {
			l.expect(id, job.Done, 0, 2)
		}
		if s := p.Stats(); s.Alone != 20 {
			t.Errorf("%d ran alone, want 20", s.Alone)
		}
		p.stop()
		if took := time.Since(begin); took < 2*time.Second {
			t.Errorf("20 runs of 100 ms took %v: some ran beside each other", took)
		}
	})
}

// A process that is never empty runs no suspect alone, and waiting for it to become
// so must not take all of the others' time, however many suspects there are.
func TestP8_SuspectsInABusyProcessDoNotStopTheOthers(t *testing.T) {
	inLab(t, func(l *lab) {
		long := make(chan struct{})
		p := l.run(4, func(_ context.Context, t *runner.Task) job.Outcome {
			if t.Job.Priority == 2 {
				<-long
			}
			time.Sleep(time.Second) // virtual
			return succeed
		})
		l.add(1, func(d *job.Draft) { d.Priority = 2 }, p)
		after(time.Second)
		l.suspects(10)
		after(16 * time.Second) // the first suspect has waited in vain
		others := l.add(30, nil, p)
		after(15 * time.Second)
		for _, id := range others {
			l.expect(id, job.Done, 0, 0)
		}
		close(long)
		after(2 * time.Minute)
		p.stop()
		l.none(job.Waiting)
	})
}

// none expects that no job is in a state.
func (l *lab) none(s job.State) {
	l.t.Helper()
	n, err := l.store.Count(l.t.Context(), store.Filter{States: []job.State{s}}, 0)
	if err != nil || n.Jobs != 0 {
		l.t.Errorf("%d jobs are %s, %v; want none", n.Jobs, s, err)
	}
}

// Handlers are long and never leave the process empty. A suspect is deferred and
// then runs beside them; two of them never run in one process at once.
func TestJ12_SuspectsDoNotStarveBesideLongHandlers(t *testing.T) {
	inLab(t, func(l *lab) {
		var suspects sync.Map
		var now, most, ran, others atomic.Int64
		p := l.run(10, func(_ context.Context, t *runner.Task) job.Outcome {
			if _, suspected := suspects.Load(t.Job.ID); !suspected {
				time.Sleep(time.Duration(37+others.Add(1)*13%41) * time.Second) // virtual; no two slots end at once
				return succeed
			}
			running := now.Add(1)
			defer now.Add(-1)
			for seen := most.Load(); running > seen && !most.CompareAndSwap(seen, running); seen = most.Load() {
			}
			time.Sleep(3 * time.Second) // virtual
			if t.Job.Deferred < 1 || t.Job.Deferred > job.MaxDeferred {
				l.t.Errorf("a suspect runs beside others and was deferred %d times, want 1..%d", t.Job.Deferred, job.MaxDeferred)
			}
			ran.Add(1)
			return succeed
		})
		for i := range 8 {
			l.add(10, func(d *job.Draft) { d.Priority = 2 + i }, p)
		}
		after(time.Second)
		for _, id := range l.suspects(4) {
			suspects.Store(id, true)
		}
		after(3 * time.Minute)
		if n := ran.Load(); n != 4 {
			t.Errorf("%d of 4 suspects have run after 3 minutes beside handlers of 37 to 77 s", n)
		}
		if n := most.Load(); n > 1 {
			t.Errorf("%d suspects ran in one process at once", n)
		}
		after(10 * time.Minute)
		p.stop()
	})
}

// Innocent suspects cost one process of the fleet a part of its time, not all of
// them all of theirs.
func TestJ12_OneProcessEmptiesItselfAtATime(t *testing.T) {
	inLab(t, func(l *lab) {
		l.suspects(8)
		var alone [2]atomic.Bool
		var others atomic.Int64
		worker := func(n int) handle {
			return func(_ context.Context, t *runner.Task) job.Outcome {
				if t.Job.Alone() {
					alone[n].Store(true)
					if alone[1-n].Load() {
						l.t.Error("two processes run a suspect alone at once")
					}
					time.Sleep(3 * time.Second) // virtual
					alone[n].Store(false)
					return succeed
				}
				time.Sleep(time.Second) // virtual
				others.Add(1)
				return succeed
			}
		}
		a := l.run(4, worker(0), func(c *runner.Config) { c.Queues[0].Workers = 8 })
		b := l.run(4, worker(1), func(c *runner.Config) { c.Queues[0].Workers = 8 })
		after(5 * time.Second)
		l.add(2_000, nil, a, b)
		from := others.Load()
		after(time.Minute)
		// Two processes of four slots do 480 in a minute.
		if n := others.Load() - from; n < 240 {
			t.Errorf("%d other jobs in a minute beside the suspects, of 480 without", n)
		}
		after(3 * time.Minute)
		a.stop()
		b.stop()
	})
}

// A job that was lost once may be what ends processes, at once, every time. Its
// beginning is committed before it begins, so that each end counts; it runs beside
// others.
func TestJ12_BeginningOfALostJobIsCommittedBeforeItBegins(t *testing.T) {
	inLab(t, func(l *lab) {
		const n = 3
		lost := l.lost(n, 1)
		var noted, most, now atomic.Int64
		p := l.run(4, func(_ context.Context, t *runner.Task) job.Outcome {
			if t.Job.Lost > 0 && noted.Load() == 0 {
				l.t.Error("a job that was lost before begins, and the store does not know")
			}
			running := now.Add(1)
			defer now.Add(-1)
			for seen := most.Load(); running > seen && !most.CompareAndSwap(seen, running); seen = most.Load() {
			}
			time.Sleep(time.Second) // virtual
			return succeed
		}, func(c *runner.Config) {
			c.NoteEvery = time.Hour
			c.Store.(*faults).after = func(method string) error {
				if method == "Note" {
					noted.Add(1)
				}
				return nil
			}
		})
		after(10 * time.Second)
		for _, id := range lost {
			l.expect(id, job.Done, 0, 1)
		}
		if most.Load() != n || noted.Load() == 0 {
			t.Errorf("%d ran at once, want %d; %d notes", most.Load(), n, noted.Load())
		}
		if s := p.Stats(); s.Alone != 0 {
			t.Errorf("%d ran alone: once lost is not suspect", s.Alone)
		}
		p.stop()
	})
}

// While the store cannot be told, a job that was lost before does not begin; it is
// not forgotten either.
func TestJ12_ALostJobWaitsForTheStore(t *testing.T) {
	inLab(t, func(l *lab) {
		id := l.lost(1, 1)[0]
		began := false
		refuse := true
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { began = true; return succeed }, func(c *runner.Config) {
			c.Store.(*faults).before = func(method string) error {
				if method == "Note" && refuse {
					return store.ErrUnavailable
				}
				return nil
			}
		})
		after(5 * time.Second)
		if began {
			t.Error("it began although that could not be stored")
		}
		p.faults.set(func(*faults) { refuse = false })
		after(10 * time.Second)
		l.expect(id, job.Done, 0, 1)
		p.stop()
	})
}

// The end of a suspect is held by an open transaction of its handler's. The others
// wait for it without claims that take them and give them back all the time.
func TestP8_SuspectsDoNotSpinWhileAnEndIsHeld(t *testing.T) {
	inLab(t, func(l *lab) {
		ids := l.suspects(3)
		var claims atomic.Int64
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome {
			time.Sleep(100 * time.Millisecond) // virtual
			return succeed
		})
		p.faults.set(func(f *faults) {
			f.held = func(id job.ID) bool { return id == ids[0] }
			f.before = func(method string) error {
				if method == "Claim" {
					claims.Add(1)
				}
				time.Sleep(time.Millisecond) // virtual: or no time would pass
				return nil
			}
		})
		l.add(1, nil, p)
		after(20 * time.Second)
		if n := claims.Load(); n > 500 {
			t.Errorf("%d claims in 20 s for three suspects", n)
		}
		p.faults.set(func(f *faults) { f.held = nil })
		after(time.Minute)
		p.stop()
		l.none(job.Waiting)
	})
}

// noAlone is a store that cannot tell who may run alone.
type noAlone struct{ store.Store }

func (noAlone) Alone(context.Context, job.WorkerID, store.RunRef) (bool, error) {
	return false, errors.New("lock timeout")
}

func TestP8_AnErrorOfAloneCostsOnlyTheSuspect(t *testing.T) {
	inLab(t, func(l *lab) {
		l.suspects(1)
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome { return succeed }, func(c *runner.Config) { c.Store = noAlone{c.Store} })
		after(time.Second)
		for _, id := range l.add(20, nil, p) {
			after(time.Second)
			l.expect(id, job.Done, 0, 0)
		}
		after(time.Minute)
		p.stop()
		l.none(job.Waiting) // the suspect has run beside others in the end
	})
}

// A row whose beginning cannot be stored costs that job, not the claims of its
// process.
func TestP8_ABeginningThatCannotBeStoredCostsOnlyItsJob(t *testing.T) {
	inLab(t, func(l *lab) {
		lost := l.lost(3, 1)
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome { return succeed }, func(c *runner.Config) {
			c.Store.(*faults).notes = func(notes []store.Note) error {
				for _, n := range notes {
					if n.ID == lost[1] {
						return errors.New("a trigger says no")
					}
				}
				return nil
			}
		})
		others := l.add(20, nil, p)
		after(time.Minute)
		for _, id := range others {
			l.expect(id, job.Done, 0, 0)
		}
		l.expect(lost[0], job.Done, 0, 1)
		l.expect(lost[2], job.Done, 0, 1)
		p.faults.set(func(f *faults) { f.notes = nil })
		after(time.Minute)
		l.expect(lost[1], job.Done, 0, 1)
		p.stop()
	})
}

// A handler whose beginning the store did not keep, because an open transaction
// holds its job, does not begin; its job goes back, and costs no other.
func TestP8_ABeginningThatIsHeldDoesNotBegin(t *testing.T) {
	for _, times := range []int{1, 3} { // three times lost runs alone
		t.Run(fmt.Sprintf("lost %d times", times), func(t *testing.T) {
			inLab(t, func(l *lab) {
				lost := l.lost(2, times)
				var held atomic.Bool
				held.Store(true)
				var early atomic.Int32
				its := func(id job.ID) bool { return held.Load() && id == lost[1] }
				p := l.run(4, func(_ context.Context, task *runner.Task) job.Outcome {
					if its(task.Job.ID) {
						early.Add(1)
					}
					return succeed
				}, func(c *runner.Config) {
					c.Store.(*faults).begins, c.Store.(*faults).held = its, its
				})
				others := l.add(20, nil, p)
				after(10 * time.Minute)
				for _, id := range append(others, lost[0]) {
					if j := l.get(id); j.State != job.Done {
						t.Errorf("another job is %v", j.State)
					}
				}
				if n := early.Load(); n > 0 {
					t.Errorf("the handler began %d times, and the store knew of none", n)
				}
				held.Store(false)
				after(10 * time.Minute)
				l.expect(lost[1], job.Done, 0, times)
				if s := p.Stats(); s.LeasesLost != 0 {
					t.Errorf("%d leases were called lost", s.LeasesLost)
				}
				p.stop()
			})
		})
	}
}
