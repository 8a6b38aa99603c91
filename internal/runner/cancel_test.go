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
		p.hub.Ready(store.Hint{Subject: store.SubjectJob})
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
		if err := l.store.SetPaused(l.t.Context(), store.OfQueue("q"), true, store.Operator{}); err != nil {
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
		total := func(c *runner.Config) { c.Queues[0].Total = 4 }
		first := l.run(4, work, total)
		ids := l.add(4, nil, first)
		after(time.Second)
		second := l.run(4, work, total) // takes half of the slots
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
