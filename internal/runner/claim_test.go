package runner_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// A job that one process has claimed ahead is not kept from another that is
// idle, when the handlers before it turn out to be long.
func TestClaim_PrefetchedJobsThatWaitTooLongGoBack(t *testing.T) {
	inLab(t, func(l *lab) {
		long := make(chan struct{})
		defer close(long)
		n := 0
		p := l.run(1, func(ctx context.Context, t *runner.Task) job.Outcome {
			if n++; n > 20 {
				select {
				case <-long:
				case <-ctx.Done():
					return fail
				}
			}
			return succeed
		}, func(c *runner.Config) { c.Grace = time.Second })
		ids := l.add(40, nil, p)
		synctest.Wait()
		if p.Stats().Ready == 0 {
			t.Fatal("nothing was prefetched, the test proves nothing")
		}
		after(2 * time.Second)
		if s := p.Stats(); s.Ready != 0 || s.Released == 0 {
			t.Errorf("%d jobs are held behind a long one, %d were released", s.Ready, s.Released)
		}
		after(time.Minute)
		if released := p.Stats().Released; released > 20 {
			t.Errorf("%d jobs released: they are claimed ahead and given back in a circle", released)
		}
		other := l.run(2, func(context.Context, *runner.Task) job.Outcome { return succeed })
		after(7 * time.Second)
		waiting := 0
		for _, id := range ids {
			if l.get(id).State == job.Waiting {
				waiting++
			}
		}
		if waiting != 0 {
			t.Errorf("%d jobs still wait although a process is idle", waiting)
		}
		other.stop()
		p.stop()
	})
}

// A job that was rescued before is only claimed to start at once; a process
// that always holds jobs ready must not starve it.
func TestClaim_RescuedJobIsNotStarvedByPrefetching(t *testing.T) {
	inLab(t, func(l *lab) {
		rescued := l.rescuedJob()
		var before atomic.Int64
		started := make(chan int64, 1)
		p := l.run(2, func(_ context.Context, t *runner.Task) job.Outcome {
			if t.Job.ID == rescued {
				started <- before.Load()
			}
			before.Add(1)
			time.Sleep(time.Millisecond)
			return succeed
		})
		l.add(500, func(d *job.Draft) { d.Priority = 1 })
		l.add(2000, func(d *job.Draft) { d.Priority = 9 }, p)
		after(400 * time.Millisecond) // 800 of 2,501 jobs
		select {
		case n := <-started:
			if n > 600 {
				t.Errorf("the rescued job started after %d others, want soon after the 500 of higher priority", n)
			}
		default:
			t.Error("the rescued job did not start while others were held ready")
		}
		after(2 * time.Second)
		p.stop()
	})
}

// Nor must it wait for the next poll when a claim that was not filled had no
// place for it to start.
func TestClaim_RescuedJobLeftBehindIsLookedForAtOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return succeed },
			func(c *runner.Config) { c.PollOnly = time.Hour })
		l.add(50, nil, p) // sets the pace, so that the runner claims ahead
		synctest.Wait()
		rescued := l.rescuedJob()
		l.add(1, func(d *job.Draft) { d.Priority = 1 }, p)
		synctest.Wait()
		l.expect(rescued, job.Done, 0, 0)
		p.stop()
	})
}

// rescuedJob is a waiting job that was taken back from a lost worker before it began.
func (l *lab) rescuedJob() job.ID {
	l.t.Helper()
	ctx := l.t.Context()
	id := l.add(1, nil)[0]
	offer := job.Offer{Kinds: map[string]int{"k": 0}}
	w, err := l.store.Register(ctx, store.Worker{Label: "doomed", Queues: []string{"q"}, Offer: offer, LostAfter: time.Minute})
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.store.Claim(ctx, store.Claim{Worker: w, Seq: 1, Offer: offer, Queues: []store.QueueClaim{{Queue: "q", Limit: 1}}}); err != nil {
		l.t.Fatal(err)
	}
	if err := l.store.Deregister(ctx, w); err != nil {
		l.t.Fatal(err)
	}
	if n, err := l.store.Rescue(ctx, 10); err != nil || n.Waiting != 1 {
		l.t.Fatalf("rescue: %+v, %v", n, err)
	}
	if j := l.get(id); j.Lost != 0 || j.Rescues != 1 {
		l.t.Fatalf("lost %d, rescues %d", j.Lost, j.Rescues)
	}
	return id
}

func TestP10_ClaimsStopWhenEndsCannotBeStored(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(100, func(context.Context, *runner.Task) job.Outcome { return succeed })
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "Finish" {
					return store.ErrUnavailable
				}
				return nil
			}
		})
		l.add(8000, nil, p)
		after(2 * time.Second)
		s := p.Stats()
		if s.Ending < 1000 || s.Ending > 2000 {
			t.Errorf("%d ends wait for the store, want claims to stop at 1,000", s.Ending)
		}
		p.heal()
		after(5 * time.Second)
		if n := p.Stats().Finished[job.Succeeded]; n != 8000 {
			t.Errorf("%d jobs done, want 8000", n)
		}
		p.stop()
	})
}

// listener is a store's listener in the hands of a test.
type listener chan store.Hint

func (l listener) Listen(ctx context.Context, hear func(store.Hint)) error {
	for {
		select {
		case h := <-l:
			hear(h)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *process) listen(l listener) (stop func()) {
	p.l.t.Helper()
	tree, err := supervise.New(supervise.Config{Services: []supervise.Service{p.hub.Service(l)}})
	if err != nil {
		p.l.t.Fatal(err)
	}
	if err := tree.Start(p.l.t.Context()); err != nil {
		p.l.t.Fatal(err)
	}
	after(2 * time.Second)
	return func() { tree.Stop(context.Background()) }
}

func TestClaim_PollsRarelyWithAHealthyListener(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return succeed })
		before := p.Stats().Looks
		after(10 * time.Second)
		if n := p.Stats().Looks - before; n != 20 {
			t.Errorf("%d looks in 10 s without a listener, want 20", n)
		}
		stop := p.listen(make(listener))
		before = p.Stats().Looks
		after(100 * time.Second)
		if n := p.Stats().Looks - before; n != 20 {
			t.Errorf("%d looks in 100 s with a listener, want 20", n)
		}
		stop()
		before = p.Stats().Looks
		after(10 * time.Second)
		if n := p.Stats().Looks - before; n < 20 || n > 22 {
			t.Errorf("%d looks in 10 s after the listener was lost, want 20", n)
		}
		p.stop()
	})
}

// A hint from another process is followed by three more looks: a throttle may
// have swallowed those of the commits right after it.
func TestClaim_HintFromOutsideIsFollowedUp(t *testing.T) {
	inLab(t, func(l *lab) {
		var started []time.Duration
		var begin time.Time
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			started = append(started, time.Since(begin))
			return succeed
		})
		hear := make(listener)
		stop := p.listen(hear)
		after(10 * time.Second)
		begin = time.Now()
		hear <- store.Hint{Subject: store.SubjectQueue, Name: "q"}
		for _, quiet := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second} {
			after(quiet)
			l.add(1, nil) // its hint is swallowed
		}
		after(2 * time.Second)
		want := []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}
		if len(started) != 3 || started[0] != want[0] || started[1] != want[1] || started[2] != want[2] {
			t.Errorf("started after %v, want %v", started, want)
		}
		stop()
		p.stop()
	})
}
