package runner_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// agreed is when all processes of a lab use their portions: they hear of each other only by their beats. A newcomer has
// lived for a beat, the others hear of it by the next, and it asks again within a third; which of two beats at the same
// instant is first is open.
const agreed = 16 * time.Second

// totalOf bounds the queue of a lab's process in the cluster.
func totalOf(n int) func(*runner.Config) {
	return func(c *runner.Config) { c.Queues[0].Total, c.Grace = n, time.Second }
}

func TestJ18_WorkersBoundOneProcess(t *testing.T) {
	inLab(t, func(l *lab) {
		brief := func(c *runner.Config) { c.Grace = time.Second }
		a, b := l.run(3, waits, brief), l.run(2, waits, brief)
		l.add(20, nil, a, b)
		after(time.Minute)
		if n, m := a.Stats().Running, b.Stats().Running; n != 3 || m != 2 {
			t.Errorf("%d and %d jobs run, want 3 and 2: each process has its own workers", n, m)
		}
		b.stop()
		a.stop()
	})
}

func TestJ18_TotalIsSplitOverTheLiveWorkers(t *testing.T) {
	inLab(t, func(l *lab) {
		p := make([]*process, 3)
		for i := range p {
			p[i] = l.run(8, waits, totalOf(8))
		}
		after(agreed)
		l.add(40, nil, p...)
		after(time.Second)
		total := 0
		for i := range p {
			n := p[i].Stats().Running
			total += n
			if n < 2 || n > 3 {
				t.Errorf("worker %d runs %d of 8, want 2 or 3", i, n)
			}
		}
		if total != 8 {
			t.Errorf("%d jobs run in the cluster, want its total of 8", total)
		}
		p[2].stop()
		after(agreed)
		if n := p[0].Stats().Running + p[1].Stats().Running; n != 8 {
			t.Errorf("%d jobs run after a worker left, want 8", n)
		}
		p[1].stop()
		p[0].stop()
	})
}

// TestJ18_AWeightMakesAPortionLarger has a process that is given three times as much as each of two others, and takes what
// its workers can run.
func TestJ18_AWeightMakesAPortionLarger(t *testing.T) {
	inLab(t, func(l *lab) {
		heavy := func(c *runner.Config) { c.Queues[0].Weight = 3 }
		p := []*process{l.run(20, waits, totalOf(10)), l.run(20, waits, totalOf(10), heavy), l.run(20, waits, totalOf(10))}
		after(agreed)
		l.add(60, nil, p...)
		after(time.Second)
		run := func(p ...*process) (list []int) {
			for _, one := range p {
				list = append(list, one.Stats().Running)
			}
			return list
		}
		if got := run(p...); !slices.Equal(got, []int{2, 6, 2}) {
			t.Errorf("%v of a total of 10 run, want 2, 6 and 2 by the weights", got)
		}
		workers, err := l.store.Registry(l.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var weights []int
		for _, w := range workers {
			weights = append(weights, w.Worker.Totals[0].Weight)
		}
		if !slices.Equal(weights, []int{0, 3, 0}) {
			t.Errorf("the registry shows the weights %v", weights)
		}
		p[2].stop()
		small := l.run(4, waits, totalOf(10), heavy)
		after(2 * agreed)
		if got := run(p[0], p[1], small); got[2] != 4 || got[0]+got[1] < 6 {
			t.Errorf("%v run: want 4, all its workers, in the last", got)
		}
		small.stop()
		p[1].stop()
		p[0].stop()
	})
}

// TestJ18_NewcomerRunsNothingBeforeTheOthersHaveHeard has a worker that cannot beat, and so does not hear of another
// that comes: it goes on with all of the total, and the newcomer has none of it until the silent one has given up its own.
func TestJ18_NewcomerRunsNothingBeforeTheOthersHaveHeard(t *testing.T) {
	inLab(t, func(l *lab) {
		brief := func(context.Context, *runner.Task) job.Outcome { <-time.After(100 * time.Millisecond); return succeed }
		first := l.run(4, brief, totalOf(4))
		l.add(2_000, nil, first)
		after(time.Second)
		first.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "Beat" {
					return errors.New("not now")
				}
				return nil
			}
		})
		second := l.run(4, brief, totalOf(4))
		after(15 * time.Second)
		began := second.Stats().Began
		if began != 0 || first.Stats().Running != 4 {
			t.Errorf("%d jobs began in the newcomer while the other ran %d of a total of 4", began, first.Stats().Running)
		}
		first.faults.set(func(f *faults) { f.before = nil })
		after(agreed)
		if n, m := first.Stats().Running, second.Stats().Running; n != 2 || m != 2 {
			t.Errorf("%d and %d jobs run, want 2 and 2 once both have heard", n, m)
		}
		second.stop()
		first.stop()
	})
}

// TestJ18_PortionOfASilentWorkerComesBackWithItsLease lets a worker die that nobody can tell to be dead.
func TestJ18_PortionOfASilentWorkerComesBackWithItsLease(t *testing.T) {
	inLab(t, func(l *lab) {
		first, second := l.run(4, waits, totalOf(4)), l.run(4, waits, totalOf(4))
		after(40 * time.Second) // steady for long enough to declare others lost
		l.add(10, nil, first, second)
		after(time.Second)
		var down atomic.Bool
		down.Store(true)
		second.faults.set(func(f *faults) {
			f.before = func(string) error {
				if down.Load() {
					return errors.New("cut off")
				}
				return nil
			}
		})
		after(20 * time.Second)
		if n := first.Stats().Running; n != 2 {
			t.Errorf("%d jobs run in the other, want its 2 while the lease is not over", n)
		}
		after(25 * time.Second)
		if n, m := first.Stats().Running, second.Stats().Running; n != 4 || m != 0 {
			t.Errorf("%d and %d jobs run, want all 4 in the one that lives", n, m)
		}
		down.Store(false)
		after(20 * time.Second)
		if n := second.Stats().Running; n > 2 {
			t.Errorf("%d jobs run in the one that came back", n)
		}
		second.stop()
		first.stop()
	})
}

// TestJ18_ATotalOfOneMovesOn has a total of one: of two workers one has nothing. In this queue it is the first, which has
// claimed ahead by then.
func TestJ18_ATotalOfOneMovesOn(t *testing.T) {
	inLab(t, func(l *lab) {
		var mu sync.Mutex
		most, running := 0, 0
		brief := func(context.Context, *runner.Task) job.Outcome {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			<-time.After(time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			return succeed
		}
		one := func(c *runner.Config) { c.Queues[0].Name, c.Queues[0].Total = "one", 1 }
		if job.Split(1, "one", []int{1, 1}, nil)[1] != 1 {
			t.Fatal("the first keeps its portion: nothing is proven")
		}
		first := l.run(1, brief, one)
		l.add(10_000, func(d *job.Draft) { d.Queue = "one" }, first)
		after(time.Second) // it claims ahead
		second := l.run(1, brief, one)
		after(time.Minute)
		if a, b := first.Stats(), second.Stats(); a.Ready+b.Ready > 0 && a.Running+b.Running == 0 {
			t.Errorf("%d jobs are held ready and nothing runs", a.Ready+b.Ready)
		}
		if n := first.Stats().Finished[job.Succeeded] + second.Stats().Finished[job.Succeeded]; n != 10_000 {
			t.Errorf("%d of 10000 jobs ended", n)
		}
		if most > 2 {
			t.Errorf("%d jobs of a total of 1 ran at once, want one and the last of the split before", most)
		}
		second.stop()
		first.stop()
	})
}

// TestJ18_ATotalCostsNoMoreBeats counts what a minute of idling costs: as much as without a total.
func TestJ18_ATotalCostsNoMoreBeats(t *testing.T) {
	idle := func(configure func(*runner.Config)) (calls map[string]int) {
		inLab(t, func(l *lab) {
			var mu sync.Mutex
			a, b := l.run(4, waits, configure), l.run(4, waits, configure)
			after(20 * time.Second)
			calls = map[string]int{}
			for _, p := range []*process{a, b} {
				p.faults.set(func(f *faults) {
					f.before = func(method string) error {
						mu.Lock()
						defer mu.Unlock()
						calls[method]++
						return nil
					}
				})
			}
			after(time.Minute)
			mu.Lock()
			calls = map[string]int{"Beat": calls["Beat"], "Register": calls["Register"], "MarkLost": calls["MarkLost"]}
			mu.Unlock()
			b.stop()
			a.stop()
		})
		return calls
	}
	with, without := idle(totalOf(4)), idle(func(*runner.Config) {})
	if with["Beat"] != 24 || without["Beat"] != 24 || with["Register"]+without["Register"] != 0 {
		t.Errorf("calls in a minute of two idle workers: %v with a total, %v without; want 24 beats each", with, without)
	}
}

// TestJ18_AHintOfMembersCausesABeat tells a worker that another has come: it asks who at once, if it has a total to share.
func TestJ18_AHintOfMembersCausesABeat(t *testing.T) {
	beats := func(configure func(*runner.Config)) (n int) {
		inLab(t, func(l *lab) {
			p := l.run(4, waits, configure)
			after(12 * time.Second)
			var count atomic.Int64
			p.faults.set(func(f *faults) {
				f.before = func(method string) error {
					if method == "Beat" {
						count.Add(1)
					}
					return nil
				}
			})
			p.hub.Ready(store.Hint{Subject: store.SubjectMembers})
			after(time.Millisecond)
			n = int(count.Load())
			p.stop()
		})
		return n
	}
	if with, without := beats(totalOf(4)), beats(func(*runner.Config) {}); with != 1 || without != 0 {
		t.Errorf("%d beats with a total and %d without, want 1 and 0", with, without)
	}
}

// TestJ18_ProcessesThatComeAndDieTakeNothing has processes that register, beat and die, one after the other, where nobody can
// tell that they are dead: the others go on with their portions, and one that comes and lives has its own after some beats.
func TestJ18_ProcessesThatComeAndDieTakeNothing(t *testing.T) {
	inLab(t, func(l *lab) {
		brief := func(context.Context, *runner.Task) job.Outcome { <-time.After(100 * time.Millisecond); return succeed }
		first, second := l.run(4, brief, totalOf(4)), l.run(4, brief, totalOf(4))
		after(agreed)
		l.add(10_000, nil, first, second)
		after(time.Second)
		var ghosts []*process
		ghost := func(n int) {
			if n%2 == 0 { // it never gets to its first beat, or no further than to it
				w, err := l.store.Register(l.t.Context(), store.Worker{
					Label: "ghost", Queues: []string{"q"}, Totals: []store.Total{{Queue: "q", Total: 4, Workers: 4}}, LostAfter: 30 * time.Second,
				})
				if err == nil && n%4 == 0 {
					_, err = l.store.Beat(l.t.Context(), store.Beat{Worker: w, Splits: true})
				}
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			p := l.run(4, brief, totalOf(4)) // a whole process, for a moment
			p.faults.set(func(f *faults) { f.before = func(string) error { return errors.New("dead") } })
			ghosts = append(ghosts, p)
		}
		for n := range 40 {
			ghost(n)
			after(time.Second)
			if a, b := first.Stats().Running, second.Stats().Running; a != 2 || b != 2 {
				t.Fatalf("%d and %d of a total of 4 run after %d processes that died, want 2 and 2", a, b, n+1)
			}
		}
		third := l.run(4, brief, totalOf(4))
		for n := range 15 { // three beats
			ghost(n)
			after(time.Second)
		}
		portions := 0
		for _, p := range []*process{first, second, third} {
			n := p.Stats().Running
			portions += n
			if n < 1 || n > 2 {
				t.Errorf("%d of a total of 4 run in one of three", n)
			}
		}
		if portions != 4 {
			t.Errorf("%d of a total of 4 run", portions)
		}
		for _, p := range ghosts {
			if n := p.Stats().Began; n != 0 {
				t.Errorf("%d jobs began in a process that died", n)
			}
			p.faults.set(func(f *faults) { f.before = nil })
			p.stop()
		}
		third.stop()
		second.stop()
		first.stop()
	})
}

// TestJ18_AProcessThatDiesLateTakesNoMoreThanTwoPortions has one that lives long enough to share, dies, and is started anew,
// again and again: the one that stays goes on with a third of the total at least, as if two had come.
func TestJ18_AProcessThatDiesLateTakesNoMoreThanTwoPortions(t *testing.T) {
	inLab(t, func(l *lab) {
		brief := func(context.Context, *runner.Task) job.Outcome { <-time.After(100 * time.Millisecond); return succeed }
		first := l.run(9, brief, totalOf(9))
		l.add(20_000, nil, first)
		var ghosts []*process
		for range 15 {
			p := l.run(9, brief, totalOf(9))
			for range 7 {
				after(time.Second)
				first.hub.Ready(store.Hint{Subject: store.SubjectMembers})
				if n := first.Stats().Running; n < 3 {
					t.Fatalf("%d of a total of 9 run after %d processes that died", n, len(ghosts))
				}
			}
			p.faults.set(func(f *faults) { f.before = func(string) error { return errors.New("dead") } })
			ghosts = append(ghosts, p)
		}
		began := uint64(0)
		for _, p := range ghosts {
			began += p.Stats().Began
			p.faults.set(func(f *faults) { f.before = nil })
			p.stop()
		}
		if began == 0 {
			t.Error("none of them shared: nothing is proven")
		}
		first.stop()
	})
}

// TestJ18_ARunOfALostWorkerCostsOnlyItself has a run of a lost worker that cannot be taken back, as when a transaction has
// locked its row: a newcomer has its portion of what is left, and all of the other total.
func TestJ18_ARunOfALostWorkerCostsOnlyItself(t *testing.T) {
	inLab(t, func(l *lab) {
		ctx := l.t.Context()
		offer := job.Offer{Kinds: map[string]int{"k": 0}}
		w, err := l.store.Register(ctx, store.Worker{
			Label: "lost", Queues: []string{"q"}, Totals: []store.Total{{Queue: "q", Total: 4, Workers: 4}}, Offer: offer, LostAfter: 30 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		version := int64(0)
		for range 3 { // it is told the version, names it, and shares
			r, err := l.store.Beat(ctx, store.Beat{Worker: w, Splits: true, Version: version})
			if err != nil {
				t.Fatal(err)
			}
			version = r.Version
		}
		l.add(1, nil)
		if c, err := l.store.Claim(ctx, store.Claim{Worker: w, Seq: 1, Offer: offer, Queues: []store.QueueClaim{{Queue: "q", Limit: 1, Start: 1}}}); err != nil || len(c.Jobs) != 1 {
			t.Fatal(c.Jobs, err)
		}
		if err := l.store.Deregister(ctx, w); err != nil {
			t.Fatal(err)
		}
		locked := func(method string) error {
			if method == "Rescue" {
				return errors.New("its row is locked")
			}
			return nil
		}
		both := func(c *runner.Config) {
			totalOf(4)(c)
			c.Queues = append(c.Queues, runner.QueueConfig{Name: "other", Workers: 4, Total: 4})
		}
		p := l.run(4, waits, both, func(c *runner.Config) { c.Store.(*faults).before = locked })
		l.add(10, nil, p)
		l.add(10, func(d *job.Draft) { d.Queue = "other" }, p)
		after(10 * time.Second)
		if n := p.Stats().Running; n != 3+4 {
			t.Errorf("%d run, want 3 beside the one that is locked, and 4 of the other total", n)
		}
		p.faults.set(func(f *faults) { f.before = nil })
		after(40 * time.Second)
		if n := p.Stats().Running; n != 4+4 {
			t.Errorf("%d run when the run was taken back, want 4 and 4", n)
		}
		p.stop()
	})
}

// TestJ18_WhatIsMarkedDoesNotBeginWithoutAPortion has a job whose beginning is being committed while the portion it was
// claimed for goes to another process: it does not begin beside what runs there.
func TestJ18_WhatIsMarkedDoesNotBeginWithoutAPortion(t *testing.T) {
	if job.Split(1, "q", []int{1, 1}, nil)[1] != 0 {
		t.Fatal("the one with the higher number keeps its portion: nothing is proven")
	}
	for name, times := range map[string]int{"rescued": 1, "suspect": job.SuspectLost} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				var mute atomic.Bool
				mute.Store(true)
				second := l.run(1, waits, totalOf(1), func(c *runner.Config) {
					c.Store.(*faults).before = func(method string) error {
						if method == "Beat" && mute.Load() {
							return errors.New("not now")
						}
						return nil
					}
				})
				first := l.run(1, waits, totalOf(1)) // shares before the second, which has the lower number
				after(5500 * time.Millisecond)
				mute.Store(false)
				second.hub.Ready(store.Hint{Subject: store.SubjectMembers})
				after(4 * time.Second) // the second shares, and the first has not heard
				id := l.lost(1, times)[0]
				committed := make(chan struct{})
				first.faults.set(func(f *faults) {
					f.before = func(method string) error {
						if method == "Note" {
							<-committed
						}
						return nil
					}
				})
				first.hub.Ready(store.Hint{Subject: store.SubjectQueue, Name: "q"})
				after(time.Millisecond)
				l.expect(id, job.Running, 0, times)
				l.add(1, nil, second)
				after(5 * time.Second) // the first has heard by its beat
				if n := second.Stats().Running; n != 1 {
					t.Errorf("%d run in the second: nothing is proven", n)
				}
				close(committed)
				after(5 * time.Second)
				if n := first.Stats().Began; n != 0 {
					t.Errorf("%d jobs began in the first beside the one that is all of the total", n)
				}
				l.expect(id, job.Waiting, 0, times)
				second.stop()
				first.stop()
			})
		})
	}
}
