package runner_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// current has a process know the settings as they are.
func (p *process) current() {
	p.l.t.Helper()
	s, err := p.l.store.Settings(p.l.t.Context())
	if err != nil {
		p.l.t.Fatal(err)
	}
	p.GoBy(s.Revision)
	after(0) // its first looks are over
}

func (f *faults) Enqueue(ctx context.Context, drafts []job.Draft) ([]job.Receipt, error) {
	return on(f, "Enqueue", func() ([]job.Receipt, error) { return f.Store.Enqueue(ctx, drafts) })
}

// accept accepts jobs as an engine does in whose process they may start.
func (p *process) accept(n int, change func(*job.Draft)) ([]job.ID, error) {
	drafts, ids := make([]job.Draft, n), make([]job.ID, n)
	for i := range drafts {
		ids[i] = job.NewID()
		drafts[i] = job.Draft{ID: ids[i], Kind: "k", Queue: "q", Priority: 5, Attempts: 5}
		if change != nil {
			change(&drafts[i])
		}
	}
	p.HandOver(drafts)
	if _, err := p.faults.Enqueue(p.l.t.Context(), drafts); err != nil {
		return ids, err
	}
	job.SettleHandOvers(drafts, job.HandedOver{})
	p.Accepted(drafts)
	return ids, nil
}

// accepted is accept without an error, and with all of it settled.
func (p *process) accepted(n int, change func(*job.Draft)) []job.ID {
	p.l.t.Helper()
	ids, err := p.accept(n, change)
	if err != nil {
		p.l.t.Fatal(err)
	}
	synctest.Wait()
	return ids
}

// wantHandedOver compares how many jobs began without a claim, and how many with one.
func (p *process) wantHandedOver(handed, claimed uint64) {
	p.l.t.Helper()
	if s := p.Stats(); s.HandedOver != handed || s.Claimed != claimed {
		p.l.t.Errorf("%d jobs were handed over and %d claimed, want %d and %d", s.HandedOver, s.Claimed, handed, claimed)
	}
}

// held is a handler that waits to be let go, and counts its calls by job.
type held struct {
	mu   sync.Mutex
	runs map[job.ID]int
	free chan struct{}
}

func newHeld() *held { return &held{runs: map[job.ID]int{}, free: make(chan struct{})} }

func (h *held) work(ctx context.Context, t *runner.Task) job.Outcome {
	h.mu.Lock()
	h.runs[t.Job.ID]++
	h.mu.Unlock()
	select {
	case <-h.free:
		return succeed
	case <-ctx.Done():
		return fail
	}
}

func (h *held) began(id job.ID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[id]
}

func TestJ34_ItStartsInTheCommitThatAcceptsIt(t *testing.T) {
	inLab(t, func(l *lab) {
		var seen job.Job
		p := l.run(1, func(_ context.Context, t *runner.Task) job.Outcome { seen = t.Job; return succeed })
		p.current()
		looks := p.Stats().Looks
		id := p.accepted(1, func(d *job.Draft) { d.Args = []byte(`{"n":1}`) })[0]
		p.wantHandedOver(1, 0)
		if p.Stats().Looks != looks {
			t.Error("a claim was sent for it")
		}
		if j := l.expect(id, job.Done, 0, 0); j.Run != 1 || string(seen.Args) != `{"n":1}` || !seen.Started.Equal(j.Started) || seen.Worker == 0 {
			t.Errorf("run %d; the handler saw %+v", j.Run, seen)
		}
		p.stop()
	})
}

// Without the settings, before its first look, and for whatever has to be compared with
// others, there is no hand-over.
func TestJ34_WhoMayNotBegin(t *testing.T) {
	inLab(t, func(l *lab) {
		h := newHeld()
		p := l.run(10, h.work)
		p.accepted(1, nil)
		p.wantHandedOver(0, 1) // it does not know the settings
		p.current()
		p.accepted(1, func(d *job.Draft) { d.Unique.Hash = []byte("u") })
		p.accepted(1, func(d *job.Draft) { d.Resend = true })
		p.accepted(1, func(d *job.Draft) { d.In = time.Microsecond })
		p.accepted(1, func(d *job.Draft) { d.Kind = "unknown" })
		p.accepted(1, func(d *job.Draft) { d.Queue = "unserved" })
		p.accepted(1, func(d *job.Draft) { d.Capabilities = []string{"gpu"} })
		p.accepted(1, func(d *job.Draft) { d.Version = 7 })
		calls := 0
		p.accepted(2, func(d *job.Draft) { // a call that may have to wait for somebody's transaction
			if calls++; calls == 2 {
				d.Unique.Hash = []byte("v")
			}
		})
		if n := p.Stats().HandedOver; n != 0 {
			t.Errorf("%d jobs were handed over, want none", n)
		}
		p.SetPauses(runner.Pauses{Queues: []string{"q"}})
		synctest.Wait()
		p.accepted(1, nil)
		p.SetPauses(runner.Pauses{Kinds: []string{"k"}})
		synctest.Wait()
		p.accepted(1, nil)
		p.SetPauses(runner.Pauses{All: true})
		synctest.Wait()
		p.accepted(1, nil)
		if n := p.Stats().HandedOver; n != 0 {
			t.Errorf("%d jobs of what is paused were handed over", n)
		}
		close(h.free)
		p.stop()
	})
}

// A slot that a waiting job wants is not taken from it: own jobs that no claim has seen
// yet are counted, also while the claim that will see them is under way.
func TestJ34_OwnJobsThatWaitKeepTheirSlots(t *testing.T) {
	inLab(t, func(l *lab) {
		h := newHeld()
		p := l.run(3, h.work)
		p.current()
		hold := make(chan struct{})
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "Claim" {
					<-hold
				}
				return nil
			}
		})
		p.accepted(2, func(d *job.Draft) { d.In = 0; d.Resend = true }) // no hand-over: they wait for the claim
		first := p.accepted(1, nil)[0]
		second := p.accepted(1, nil)[0]
		if h.began(first) != 1 || h.began(second) != 0 {
			t.Errorf("of 3 slots 2 are wanted: the next began %d times and the one after it %d, want 1 and 0", h.began(first), h.began(second))
		}
		p.faults.set(func(f *faults) { f.before = nil })
		close(hold)
		synctest.Wait()
		p.wantHandedOver(1, 3)
		close(h.free)
		after(time.Second)
		l.expect(second, job.Done, 0, 0)
		p.accepted(1, nil)
		if n := p.Stats().HandedOver; n != 2 {
			t.Errorf("%d handed over: it did not come back after the burst", n)
		}
		p.stop()
	})
}

// Jobs of others are not overtaken: from the hint on nothing is handed over until a
// claim has come back with less than it asked for.
func TestJ34_OthersAreNotOvertaken(t *testing.T) {
	inLab(t, func(l *lab) {
		h := newHeld()
		p := l.run(2, h.work)
		p.current()
		foreign := l.add(1, nil)[0] // accepted elsewhere
		claims := make(chan struct{})
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "Claim" {
					<-claims
				}
				return nil
			}
		})
		p.hub.Ready(store.Hint{Subject: store.SubjectQueue, Name: "q"})
		own, err := p.accept(2, nil) // before a claim has its turn
		if err != nil {
			t.Fatal(err)
		}
		close(claims)
		synctest.Wait()
		if h.began(foreign) != 1 || h.began(own[0]) != 1 || h.began(own[1]) != 0 {
			t.Errorf("the job of another process began %d times, those after it %d and %d", h.began(foreign), h.began(own[0]), h.began(own[1]))
		}
		p.wantHandedOver(0, 2)
		close(h.free)
		p.stop()
	})
}

// A line that is longer than what a claim takes is worked off before anything is handed
// over, and so is what falls due.
func TestJ34_NotInFrontOfALineOrOfWhatIsDue(t *testing.T) {
	inLab(t, func(l *lab) {
		var order []job.ID
		p := l.run(1, func(_ context.Context, t *runner.Task) job.Outcome {
			order = append(order, t.Job.ID)
			time.Sleep(10 * time.Millisecond) // virtual: the work
			return succeed
		}, func(c *runner.Config) { c.Queues[0].Prefetch = -1 })
		p.current()
		var want []job.ID
		for range 5 {
			ids, err := p.accept(1, nil)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, ids...)
		}
		after(time.Second)
		if fmt.Sprint(order) != fmt.Sprint(want) {
			t.Errorf("began in the order %v, want %v", order, want)
		}
		p.wantHandedOver(1, 4)

		order = nil
		due := l.add(1, func(d *job.Draft) { d.In = time.Second }, p)
		synctest.Wait()
		time.Sleep(time.Second) // virtual: now it is due, and nobody has looked
		own, err := p.accept(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		if want := append(due, own...); fmt.Sprint(order) != fmt.Sprint(want) {
			t.Errorf("began in the order %v, want what was due first: %v", order, want)
		}
		p.stop()
	})
}

// While a report is under way nothing is handed over, since it would not be listed; what
// was on its way before is listed, and is not stale.
func TestJ34_BesideAReport(t *testing.T) {
	inLab(t, func(l *lab) {
		h := newHeld()
		p := l.run(5, h.work, func(c *runner.Config) { c.HoldEvery = time.Minute })
		p.current()
		enqueue, report := make(chan struct{}), make(chan struct{})
		var asked atomic.Bool
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				switch method {
				case "Enqueue":
					<-enqueue
				case "ReportRuns":
					asked.Store(true)
				}
				return nil
			}
			f.after = func(method string) error {
				if method == "ReportRuns" {
					<-report
				}
				return nil
			}
		})
		var coming []job.ID
		done := make(chan error, 1)
		go func() {
			var err error
			coming, err = p.accept(1, nil)
			done <- err
		}()
		synctest.Wait()
		time.Sleep(time.Minute) // virtual: the report lists it, and the store does not know of it
		p.hub.Ready(store.Hint{Subject: store.SubjectQueue, Name: "elsewhere"})
		synctest.Wait()
		if !asked.Load() {
			t.Fatal("no report was sent, the test proves nothing")
		}
		close(enqueue)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		p.faults.set(func(f *faults) { f.before = nil })
		beside := p.accepted(1, nil)[0]
		if h.began(beside) != 0 {
			t.Error("a job was handed over beside the report")
		}
		p.faults.set(func(f *faults) { f.after = nil })
		close(report)
		after(time.Second)
		for _, id := range append(coming, beside) {
			if n := h.began(id); n != 1 {
				t.Errorf("a job began %d times, want once", n)
			}
		}
		if s := p.Stats(); s.LeasesLost != 0 || s.Returned != 0 || s.HandedOver != 1 {
			t.Errorf("%d leases lost, %d runs returned, %d handed over", s.LeasesLost, s.Returned, s.HandedOver)
		}
		close(h.free)
		p.stop()
	})
}

// The answer of a commit is lost. Where the store knows what became of it the job starts
// all the same; where nobody knows a report gives it back at once.
func TestJ32_AHandOverWhoseAnswerIsLost(t *testing.T) {
	inLab(t, func(l *lab) {
		h := newHeld()
		p := l.run(5, h.work)
		p.current()
		p.faults.set(func(f *faults) {
			f.after = func(method string) error {
				if method == "Enqueue" {
					return job.ErrOutcomeUnknown
				}
				return nil
			}
		})
		ids, _ := p.accept(1, nil)
		synctest.Wait()
		if h.began(ids[0]) != 1 {
			t.Error("it did not begin although the store knows that it does")
		}
		// Nobody knows: the row is there, leased to this worker.
		d := job.Draft{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 5}
		drafts := []job.Draft{d}
		p.HandOver(drafts)
		lost := *drafts[0].HandOver
		lost.Taker = deaf{}
		d.HandOver = &lost
		if _, err := l.store.Enqueue(l.t.Context(), []job.Draft{d}); err != nil {
			t.Fatal(err)
		}
		drafts[0].HandOver.Settle(job.HandedOver{Unknown: true})
		after(100 * time.Millisecond)
		if h.began(d.ID) != 1 || l.get(d.ID).Run != 2 {
			t.Errorf("it began %d times, in run %d: want once, in run 2, after a report", h.began(d.ID), l.get(d.ID).Run)
		}
		if s := p.Stats(); s.Returned != 1 {
			t.Errorf("%d runs returned, want 1", s.Returned)
		}
		// A late word of an earlier try that nobody works on.
		d = job.Draft{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 5}
		drafts = []job.Draft{d}
		p.HandOver(drafts)
		late := drafts[0].HandOver
		late.Settle(job.HandedOver{})
		d.HandOver = late
		if _, err := l.store.Enqueue(l.t.Context(), []job.Draft{d}); err != nil {
			t.Fatal(err)
		}
		after(100 * time.Millisecond)
		if h.began(d.ID) != 1 || l.get(d.ID).Run != 2 {
			t.Errorf("it began %d times, in run %d: want once, in run 2", h.began(d.ID), l.get(d.ID).Run)
		}
		close(h.free)
		p.stop()
	})
}

// deaf is a taker whom nobody can tell anything.
type deaf struct{}

func (deaf) Settle(job.HandedOver) {}

// A stop waits for what is on its way, and gives it back without an attempt.
func TestJ34_BesideAStop(t *testing.T) {
	inLab(t, func(l *lab) {
		h := newHeld()
		p := l.run(5, h.work)
		p.current()
		hold := make(chan struct{})
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "Enqueue" {
					<-hold
				}
				return nil
			}
		})
		done := make(chan []job.ID, 1)
		go func() {
			ids, err := p.accept(1, nil)
			if err != nil {
				t.Error(err)
			}
			done <- ids
		}()
		synctest.Wait()
		p.cancel()
		synctest.Wait()
		select {
		case <-p.ended:
			t.Fatal("Run ended while a job was being handed over")
		default:
		}
		close(hold)
		id := (<-done)[0]
		if err := <-p.ended; err != nil {
			t.Error("run:", err)
		}
		if h.began(id) != 0 {
			t.Error("it began although the process stops")
		}
		l.expect(id, job.Waiting, 0, 0)
	})
}

// What was handed over is judged once more when it is there: it begins only where a
// claimed job would.
func TestJ34_WhatChangedMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *process)
		state  job.State
	}{
		"the kind was paused":   {func(p *process) { p.SetPauses(runner.Pauses{Kinds: []string{"k"}}) }, job.Waiting},
		"the queue was removed": {func(p *process) { p.must(p.SetQueues([]runner.QueueConfig{{Name: "other", Workers: 1}})) }, job.Waiting},
		"there are fewer slots": {func(p *process) {
			p.must(p.SetQueues([]runner.QueueConfig{{Name: "q", Workers: 1, Backoff: job.NoBackoff}}))
		}, job.Running},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				h := newHeld()
				p := l.run(2, h.work)
				p.current()
				p.accepted(1, nil) // runs
				hold := make(chan struct{})
				p.faults.set(func(f *faults) {
					f.before = func(method string) error {
						if method == "Enqueue" {
							<-hold
						}
						return nil
					}
				})
				done := make(chan job.ID, 1)
				go func() {
					ids, err := p.accept(1, nil)
					if err != nil {
						t.Error(err)
					}
					done <- ids[0]
				}()
				synctest.Wait()
				c.change(p)
				synctest.Wait()
				close(hold)
				id := <-done
				synctest.Wait()
				if h.began(id) != 0 {
					t.Error("it began")
				}
				l.expect(id, c.state, 0, 0)
				close(h.free)
				p.stop()
			})
		})
	}
}

func (p *process) must(err error) {
	p.l.t.Helper()
	if err != nil {
		p.l.t.Fatal(err)
	}
}

// Follow-ups begin with the end of the run that brings them, in the slot that it leaves.
func TestJ34_FollowUpsBeginWithTheEnd(t *testing.T) {
	inLab(t, func(l *lab) {
		var order []int
		p := l.run(1, func(_ context.Context, t *runner.Task) job.Outcome {
			n := len(order)
			order = append(order, n)
			o := succeed
			if n < 5 {
				o.Then = &job.FollowUps{Drafts: []job.Draft{{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 5}}}
			}
			return o
		})
		p.current()
		p.accepted(1, nil)
		after(time.Second)
		if len(order) != 6 {
			t.Errorf("%d runs, want 6", len(order))
		}
		p.wantHandedOver(6, 0)
		p.stop()
	})
}

// Hints that this process has counted do not stop hand-over, others do.
func TestJ34_OneThatWaitsDoesNotSwitchItOff(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome { return succeed })
		p.current()
		for i := range 50 {
			p.accepted(1, func(d *job.Draft) { d.Resend = i%10 == 0 })
		}
		p.wantHandedOver(45, 5)
		p.stop()
	})
}
