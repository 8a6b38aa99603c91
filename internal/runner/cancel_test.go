package runner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func (l *lab) cancelJob(id job.ID) {
	l.t.Helper()
	if _, err := l.store.Cancel(l.t.Context(), []job.ID{id}, store.Operator{}); err != nil {
		l.t.Fatal(err)
	}
}

// waits runs until its context ends and returns that as its error.
func waits(ctx context.Context, _ *runner.Task) job.Outcome {
	<-ctx.Done()
	return job.Outcome{Kind: job.Failed, Message: context.Cause(ctx).Error()}
}

func TestJ10_CancelInTheProcessIsAtOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, waits)
		id := l.add(1, nil, p)[0]
		synctest.Wait()
		l.cancelJob(id)
		p.Cancel([]job.ID{id})
		synctest.Wait() // no time passes
		l.expect(id, job.Cancelled, 0, 0)
		p.stop()
	})
}

func TestJ10_CancelFromElsewhereComesWithinASecond(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, waits)
		id := l.add(1, nil, p)[0]
		after(3 * time.Second)
		l.cancelJob(id) // nobody tells p
		after(600 * time.Millisecond)
		l.expect(id, job.Cancelled, 0, 0)
		told := l.add(1, nil, p)[0]
		synctest.Wait()
		l.cancelJob(told)
		p.hub.Ready(store.Hint{Cancel: true})
		after(100 * time.Millisecond)
		l.expect(told, job.Cancelled, 0, 0)
		p.stop()
	})
}

func TestJ10_CancelOfAPrefetchedJobEndsItUnstarted(t *testing.T) {
	inLab(t, func(l *lab) {
		slow := make(chan struct{})
		started := map[job.ID]bool{}
		p := l.run(1, func(_ context.Context, t *runner.Task) job.Outcome {
			if started[t.Job.ID] = true; len(started) > 10 {
				<-slow
			}
			return succeed
		})
		ids := l.add(20, nil, p)
		synctest.Wait()
		last := ids[len(ids)-1]
		if l.get(last).State != job.Running {
			t.Fatal("the last job was not prefetched, the test proves nothing")
		}
		l.cancelJob(last)
		p.Cancel([]job.ID{last})
		synctest.Wait()
		l.expect(last, job.Cancelled, 0, 0)
		close(slow)
		after(time.Second)
		if started[last] {
			t.Error("a cancelled job was started")
		}
		p.stop()
	})
}

func TestP9_LateCancelDoesNotTurnDoneWorkIntoCancelled(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(1, func(ctx context.Context, _ *runner.Task) job.Outcome {
			<-ctx.Done() // the work was done all the same
			return succeed
		})
		id := l.add(1, nil, p)[0]
		synctest.Wait()
		l.cancelJob(id)
		p.Cancel([]job.ID{id})
		synctest.Wait()
		l.expect(id, job.Done, 0, 0)
		p.stop()
	})
}

func TestJ10_PauseLetsRunningJobsFinish(t *testing.T) {
	inLab(t, func(l *lab) {
		var ended error
		p := l.run(1, func(ctx context.Context, _ *runner.Task) job.Outcome {
			time.Sleep(10 * time.Second)
			ended = ctx.Err()
			return succeed
		})
		ids := l.add(2, nil, p)
		after(time.Second)
		if err := l.store.SetPaused(l.t.Context(), "q", true, store.Operator{}); err != nil {
			t.Fatal(err)
		}
		after(time.Minute)
		l.expect(ids[0], job.Done, 0, 0)
		l.expect(ids[1], job.Waiting, 0, 0)
		if ended != nil {
			t.Errorf("pause interrupted the running job: %v", ended)
		}
		p.stop()
	})
}

func TestJ10_ScaleDownLetsRunningJobsFinish(t *testing.T) {
	inLab(t, func(l *lab) {
		interrupted := false
		work := func(ctx context.Context, _ *runner.Task) job.Outcome {
			select {
			case <-ctx.Done():
				interrupted = true
				return fail
			case <-time.After(30 * time.Second):
				return succeed
			}
		}
		first := l.run(4, work)
		ids := l.add(4, nil, first)
		after(time.Second)
		second := l.run(4, work) // takes half of the slots
		after(time.Minute)
		for _, id := range ids {
			l.expect(id, job.Done, 0, 0)
		}
		if interrupted {
			t.Error("scale-down interrupted a job")
		}
		second.stop()
		first.stop()
	})
}

func TestJ18_SlotsAreSplitOverTheLiveWorkers(t *testing.T) {
	inLab(t, func(l *lab) {
		p := make([]*process, 3)
		for i := range p {
			p[i] = l.run(8, waits, func(c *runner.Config) { c.Grace = time.Second })
		}
		after(6 * time.Second) // everyone has heard of everyone by a beat
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
		after(6 * time.Second)
		if n := p[0].Stats().Running + p[1].Stats().Running; n != 8 {
			t.Errorf("%d jobs run after a worker left, want 8", n)
		}
		p[1].stop()
		p[0].stop()
	})
}

func TestJ18_MaxLocalBoundsOneProcess(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(8, waits, func(c *runner.Config) { c.Queues[0].MaxLocal, c.Grace = 3, time.Second })
		l.add(10, nil, p)
		after(time.Second)
		if n := p.Stats().Running; n != 3 {
			t.Errorf("%d jobs run, want 3", n)
		}
		p.stop()
	})
}
