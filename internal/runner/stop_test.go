package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func TestP7_HandlersGetTheGracePeriod(t *testing.T) {
	inLab(t, func(l *lab) {
		var seen error
		p := l.run(1, func(ctx context.Context, _ *runner.Task) job.Outcome {
			time.Sleep(20 * time.Second) // less than the grace of 25 s
			seen = ctx.Err()
			return succeed
		})
		id := l.add(1, nil, p)[0]
		after(time.Second)
		begin := time.Now()
		p.stop()
		if seen != nil {
			t.Errorf("the handler's context ended with Run's: %v", seen)
		}
		if took := time.Since(begin); took != 19*time.Second {
			t.Errorf("stop took %v, want the 19 s the handler still needed", took)
		}
		l.expect(id, job.Done, 0, 0)
	})
}

func TestP7_NoNewClaimsWhileStopping(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(2, func(context.Context, *runner.Task) job.Outcome {
			time.Sleep(10 * time.Second)
			return succeed
		})
		l.add(1, nil, p)
		after(time.Second)
		p.cancel()
		synctest.Wait()
		late := l.add(1, nil, p)[0] // one slot is free
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
		if j := l.expect(late, job.Waiting, 0, 0); j.Run != 0 {
			t.Error("a job was claimed while stopping")
		}
	})
}

func TestP7_PrefetchedJobsGoBack(t *testing.T) {
	inLab(t, func(l *lab) {
		slow := make(chan struct{})
		n := 0
		p := l.run(1, func(ctx context.Context, _ *runner.Task) job.Outcome {
			if n++; n > 20 { // short jobs first, so that the runner claims ahead
				<-slow
			}
			return succeed
		})
		ids := l.add(40, nil, p)
		synctest.Wait()
		if ready := p.Stats().Ready; ready == 0 {
			t.Fatal("nothing was prefetched, the test proves nothing")
		}
		p.cancel()
		synctest.Wait() // at once, while a handler still uses its grace period
		waiting := 0
		for _, id := range ids {
			switch l.get(id).State {
			case job.Waiting:
				l.expect(id, job.Waiting, 0, 0)
				waiting++
			case job.Done:
			default:
				l.expect(id, job.Running, 0, 0)
			}
		}
		if waiting != 19 {
			t.Errorf("%d jobs went back or were never claimed, want 19", waiting)
		}
		close(slow)
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestP7_AfterTheGraceTheContextIsCancelledAndNoAttemptBurned(t *testing.T) {
	inLab(t, func(l *lab) {
		var cause error
		p := l.run(1, func(ctx context.Context, _ *runner.Task) job.Outcome {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return job.Outcome{Kind: job.Failed, Message: ctx.Err().Error()}
		})
		id := l.add(1, nil, p)[0]
		after(time.Second)
		begin := time.Now()
		p.stop()
		if cause != job.ErrStopping {
			t.Errorf("cause %v, want ErrStopping", cause)
		}
		if took := time.Since(begin); took != 20*time.Second {
			t.Errorf("stop took %v, want the grace of 20 s", took)
		}
		if j := l.expect(id, job.Waiting, 0, 0); len(j.Failures.List()) != 0 {
			t.Errorf("failures %v, want none", j.Failures)
		}
	})
}

func TestP7_HandlerThatDoesNotStopIsNamedAndItsJobGoesBack(t *testing.T) {
	inLab(t, func(l *lab) {
		release := make(chan struct{})
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			<-release
			return succeed
		})
		id := l.add(1, nil, p)[0]
		after(time.Second)
		begin := time.Now()
		p.cancel()
		err := <-p.ended
		if !errors.Is(err, runner.ErrNotStopped) || !strings.Contains(err.Error(), "k "+id.String()+" (run 1)") {
			t.Errorf("run: %v, want ErrNotStopped naming k %s", err, id)
		}
		if took := time.Since(begin); took != 25*time.Second {
			t.Errorf("stop took %v, want 20 s of grace and 5 s", took)
		}
		l.expect(id, job.Waiting, 0, 0)
		if left, err := l.store.Registry(l.t.Context()); err != nil || len(left) != 0 {
			t.Errorf("workers left: %v, %v", left, err)
		}
		close(release) // what it comes to now is dropped
		synctest.Wait()
		l.expect(id, job.Waiting, 0, 0)
	})
}

func TestP7_StopIsBoundedWhenTheStoreIsDown(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
			time.Sleep(2 * time.Second)
			return succeed
		})
		id := l.add(1, nil, p)[0]
		after(time.Second)
		p.faults.set(func(f *faults) { f.before = func(string) error { return store.ErrUnavailable } })
		begin := time.Now()
		p.cancel()
		err := <-p.ended
		if !errors.Is(err, runner.ErrNotFinished) || !strings.Contains(err.Error(), id.String()) {
			t.Errorf("run: %v, want ErrNotFinished naming the job", err)
		}
		if took := time.Since(begin); took > 12*time.Second {
			t.Errorf("stop took %v with a store that is down", took)
		}
		// The next process takes over: the worker is lost.
		next := l.run(1, func(context.Context, *runner.Task) job.Outcome { return succeed })
		after(time.Minute)
		if j := l.expect(id, job.Done, 0, 0); j.Rescues != 1 {
			t.Errorf("rescued %d times, want 1", j.Rescues)
		}
		next.stop()
	})
}

func TestP7_StopIsBoundedWhenTheStoreHangs(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return succeed })
		hung := make(chan struct{})
		p.faults.set(func(f *faults) { f.before = func(string) error { <-hung; return store.ErrUnavailable } })
		l.add(1, nil, p)
		after(10 * time.Second)
		begin := time.Now()
		p.cancel()
		err := <-p.ended
		if err == nil {
			t.Error("run: nil, want an error that names what hangs")
		}
		if took := time.Since(begin); took > 28*time.Second {
			t.Errorf("stop took %v", took)
		}
		close(hung)
		synctest.Wait()
	})
}

// Who kills processes counts from the signal on: Kubernetes 30 s. Whatever goes
// wrong in a stop, and all of it at once, takes no more than the grace and 8 s.
func TestP7_AStopTakesTheGraceAndEightSecondsAtMost(t *testing.T) {
	for _, c := range []struct {
		name  string
		hangs func(method string) bool // and does not listen to its context
		fails bool
		stuck bool // the handler does not stop
	}{
		{name: "a stuck handler", stuck: true},
		{name: "a stuck handler, and the store is down", stuck: true, fails: true},
		{name: "a stuck handler, and the store hangs", stuck: true, hangs: func(string) bool { return true }},
		{name: "a stuck handler, and ends are not taken", stuck: true, hangs: func(m string) bool { return m == "Finish" }},
		{name: "a stuck handler, and leaving hangs", stuck: true, hangs: func(m string) bool { return m == "ReportRuns" }},
		{name: "leaving hangs", hangs: func(m string) bool { return m == "Deregister" }},
		{name: "the store hangs", hangs: func(string) bool { return true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				release, hung := make(chan struct{}), make(chan struct{})
				p := l.run(1, func(context.Context, *runner.Task) job.Outcome {
					if c.stuck {
						<-release
					}
					return succeed
				})
				l.add(1, nil, p)
				after(time.Second)
				p.faults.set(func(f *faults) {
					f.before = func(method string) error {
						if c.hangs != nil && c.hangs(method) {
							<-hung
						}
						if c.fails {
							return store.ErrUnavailable
						}
						return nil
					}
				})
				begin := time.Now()
				p.cancel()
				if err := <-p.ended; err == nil {
					t.Error("run: nil, want what it left behind")
				}
				if took := time.Since(begin); took > 28*time.Second {
					t.Errorf("stop took %v, want 20 s of grace and 8 s at most", took)
				}
				close(release)
				close(hung)
				synctest.Wait()
			})
		})
	}
}

func TestP7_RunTwiceIsRefused(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return succeed })
		if err := p.Run(l.t.Context()); !errors.Is(err, runner.ErrRunning) {
			t.Errorf("second Run: %v", err)
		}
		p.stop()
	})
}

func TestP7_ClosedStoreEndsRun(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return succeed })
		p.faults.set(func(f *faults) { f.before = func(string) error { return store.ErrClosed } })
		if err := <-p.ended; !errors.Is(err, store.ErrClosed) {
			t.Errorf("run: %v, want ErrClosed", err)
		}
		p.cancel()
	})
}

// A worker that was lost registers anew while its process stops. The answer comes
// in when there is nothing left to wait for: it is not left behind in the registry,
// where it would keep a share of every queue until it is lost.
func TestP7_AWorkerThatRegistersDuringAStopIsNotLeftBehind(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return succeed })
		answer := make(chan struct{})
		p.faults.set(func(f *faults) {
			f.after = func(method string) error {
				if method == "Register" {
					<-answer
				}
				return nil
			}
		})
		if err := l.store.Deregister(l.t.Context(), p.Member().Worker()); err != nil {
			l.t.Fatal(err)
		}
		after(10 * time.Second) // with its next beat it learns of it
		if p.Member().Worker() != 0 {
			l.t.Fatal("it has registered already")
		}
		time.AfterFunc(time.Second, func() { close(answer) })
		p.stop()
		workers, err := l.store.Registry(l.t.Context())
		if err != nil || len(workers) != 0 {
			l.t.Errorf("%d workers are registered, %v; want none", len(workers), err)
		}
	})
}
