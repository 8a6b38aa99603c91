package runner_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
)

func inQueue(name string) func(*job.Draft) { return func(d *job.Draft) { d.Queue = name } }

func (p *process) setQueues(queues ...runner.QueueConfig) {
	p.l.t.Helper()
	if err := p.SetQueues(queues); err != nil {
		p.l.t.Fatal(err)
	}
}

// served is which queues the registry knows a process to serve.
func (l *lab) served() []string {
	l.t.Helper()
	workers, err := l.store.Registry(l.t.Context())
	if err != nil || len(workers) != 1 {
		l.t.Fatalf("%d workers, %v; want 1", len(workers), err)
	}
	return workers[0].Worker.Queues
}

func TestJ30_QueuesAreAddedAndRemovedWhileItRuns(t *testing.T) {
	inLab(t, func(l *lab) {
		release := make(chan struct{})
		p := l.run(2, func(_ context.Context, t *runner.Task) job.Outcome {
			if t.Job.Queue == "q" {
				<-release
			}
			return succeed
		})
		old := l.add(5, nil, p)
		fresh := l.add(3, inQueue("new"), p)
		after(time.Second)
		l.expect(fresh[0], job.Waiting, 0, 0)
		p.setQueues(runner.QueueConfig{Name: "new", Workers: 2})
		after(time.Millisecond)
		for _, id := range fresh {
			l.expect(id, job.Done, 0, 0)
		}
		if n := p.Stats().Running; n != 2 {
			t.Errorf("%d jobs of the removed queue run, want the 2 that ran", n)
		}
		if got := l.served(); !slices.Equal(got, []string{"new"}) {
			t.Errorf("the registry knows %v", got)
		}
		p.setQueues(runner.QueueConfig{Name: "new", Workers: 2}, runner.QueueConfig{Name: "q", Workers: 2})
		after(10 * time.Second)
		if n := p.Stats().Running; n != 2 {
			t.Errorf("%d jobs run in the queue that came back, want 2: those of before count", n)
		}
		p.setQueues(runner.QueueConfig{Name: "new", Workers: 2})
		close(release)
		after(10 * time.Second)
		l.expect(old[0], job.Done, 0, 0)
		l.expect(old[4], job.Waiting, 0, 0)
		hinted := l.add(1, inQueue("new"), p)
		after(time.Millisecond)
		l.expect(hinted[0], job.Done, 0, 0)
		p.stop()
	})
}

// What was claimed ahead of a queue that is removed goes back at once and costs nothing,
// also when the claim is still under way.
func TestJ30_ARemovedQueueGivesBackWhatHasNotStarted(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			time.Sleep(time.Millisecond) // virtual: a job takes so long
			return succeed
		})
		ids := l.add(50, nil, p)
		after(10*time.Millisecond + 500*time.Microsecond)
		if p.Stats().Ready == 0 {
			t.Error("nothing is claimed ahead")
		}
		p.faults.set(func(f *faults) {
			f.after = func(method string) error {
				if method == "Claim" {
					time.Sleep(20 * time.Millisecond) // virtual: the answer is under way for so long
				}
				return nil
			}
		})
		after(5 * time.Millisecond)
		p.setQueues(runner.QueueConfig{Name: "other", Workers: 1})
		after(100 * time.Millisecond) // sooner than what waits too long goes back anyway
		if s := p.Stats(); s.Running+s.Ready+s.Ending != 0 {
			t.Errorf("held: %+v", s)
		}
		waiting := 0
		for _, id := range ids {
			if j := l.get(id); j.State == job.Waiting {
				if waiting++; j.Used != 0 {
					t.Errorf("%+v: going back costs no attempt", j)
				}
			}
		}
		if done := int(p.Stats().Finished[job.Succeeded]); done == 0 || waiting == 0 || done+waiting != 50 {
			t.Errorf("%d done, %d waiting of 50", done, waiting)
		}
		p.stop()
	})
}

func TestJ30_SlotsBackoffAndRetentionChangeAtOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, waits, func(c *runner.Config) { c.Grace = time.Second })
		l.add(10, nil, p)
		after(time.Second)
		if n := p.Stats().Running; n != 1 {
			t.Fatalf("%d run", n)
		}
		p.setQueues(runner.QueueConfig{Name: "q", Workers: 4})
		after(time.Millisecond)
		if n := p.Stats().Running; n != 4 {
			t.Errorf("%d jobs run, want 4", n)
		}
		p.setQueues(runner.QueueConfig{Name: "q", Workers: 2})
		after(time.Second)
		if n, slots := p.Stats().Running, p.Slots("q"); n != 4 || slots != 2 {
			t.Errorf("%d jobs run in %d slots: what runs goes on", n, slots)
		}
		p.stop()
	})
	inLab(t, func(l *lab) {
		release := make(chan job.Outcome)
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return <-release })
		ids := l.add(1, nil, p)
		after(time.Second)
		p.setQueues(runner.QueueConfig{Name: "q", Workers: 1, Backoff: job.Constant(time.Hour), Keep: job.Keep{Done: 3 * time.Hour}})
		release <- fail
		after(time.Second)
		if due := time.Until(l.get(ids[0]).Due); due < 59*time.Minute {
			t.Errorf("due in %v, want the backoff of when it ended", due)
		}
		after(time.Hour)
		release <- succeed
		after(time.Second)
		if j := l.get(ids[0]); j.State != job.Done || j.Expires.Sub(j.Finished) != 3*time.Hour {
			t.Errorf("%s, expires %v after its end; want 3h", j.State, j.Expires.Sub(j.Finished))
		}
		p.stop()
	})
}

func TestJ30_QueuesAreChecked(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, waits)
		err := p.SetQueues([]runner.QueueConfig{{Name: "a b"}, {Name: "q", Workers: 1, Total: -1}, {Name: "q", Workers: 1}})
		for _, part := range []string{`queue "a b"`, "workers of queue a b 0", "total of queue q -1", "is given twice"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not name %q: %v", part, err)
			}
		}
		if p.Slots("q") != 1 {
			t.Error("what was refused changed something")
		}
		p.stop()
	})
}

// A kind that is paused is neither claimed nor started; one that runs goes on, and
// the registry still says that it is known.
func TestJ30_APausedKindIsNotOffered(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome { return succeed },
			func(c *runner.Config) {
				c.Kinds = append(c.Kinds, runner.Kind{Name: "other", Handler: c.Kinds[0].Handler})
			})
		p.SetPauses(runner.Pauses{Kinds: []string{"k"}})
		paused := l.add(3, nil, p)
		others := l.add(3, func(d *job.Draft) { d.Kind = "other" }, p)
		after(time.Minute)
		l.expect(paused[0], job.Waiting, 0, 0)
		l.expect(others[2], job.Done, 0, 0)
		if w, err := l.store.Registry(l.t.Context()); err != nil || len(w[0].Worker.Offer.Kinds) != 2 {
			t.Errorf("the registry knows %+v, %v", w, err)
		}
		p.SetPauses(runner.Pauses{Kinds: []string{"k", "other"}})
		looks := p.Stats().Looks
		l.add(1, func(d *job.Draft) { d.Kind = "other" }, p)
		after(time.Minute)
		if n := p.Stats().Looks - looks; n != 0 {
			t.Errorf("%d claims although nothing is offered", n)
		}
		p.SetPauses(runner.Pauses{})
		after(time.Millisecond)
		l.expect(paused[0], job.Done, 0, 0)
		p.stop()
	})
}

// A total that is given to a queue while it runs, taken back and given again: portions
// come from the registry, and what a process may use never grows by itself.
func TestJ30_ATotalComesAndGoesWhileItRuns(t *testing.T) {
	inLab(t, func(l *lab) {
		with := func(total int) runner.QueueConfig { return runner.QueueConfig{Name: "q", Workers: 6, Total: total} }
		p := []*process{l.run(6, waits, totalOf(0)), l.run(6, waits, totalOf(0))}
		after(time.Second)
		slots := func() [2]int { return [2]int{p[0].Slots("q"), p[1].Slots("q")} }
		want := func(what string, total int) {
			t.Helper()
			if got := slots(); got[0]+got[1] != total {
				t.Errorf("%s: %v slots, want %d together", what, got, total)
			}
		}
		want("without a total", 12)
		for _, p := range p {
			asked := make(chan struct{})
			p.faults.set(func(f *faults) { f.before = func(string) error { <-asked; return nil } })
			p.setQueues(with(4))
			if n := p.Slots("q"); n != 0 {
				t.Errorf("%d slots before the registry was asked", n)
			}
			p.faults.set(func(f *faults) { f.before = nil })
			close(asked)
		}
		after(agreed)
		want("with a total", 4)
		p[0].setQueues(with(2))
		after(agreed)
		want("one has a lower one", 2)
		p[1].setQueues(with(2))
		p[0].setQueues(with(9))
		after(agreed)
		want("the other has", 2)
		p[1].setQueues(with(9))
		after(agreed)
		want("a higher one", 9)
		p[1].setQueues()
		after(agreed)
		want("one does not serve it any more", 6)
		p[1].setQueues(with(9))
		after(agreed)
		want("it does again", 9)
		p[0].setQueues(with(0))
		after(agreed)
		if got := slots(); got != [2]int{6, 6} {
			t.Errorf("one without a total does not take part, and the other has all of it: %v", got)
		}
		p[0].stop()
		p[1].stop()
	})
}
