package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
)

// What a dead process held comes back all at once. Each of these jobs runs
// alone, but one after the other, not one per delay.
func TestJ12_ManySuspectsRunOneAfterTheOther(t *testing.T) {
	inLab(t, func(l *lab) {
		suspects := l.lostJobs(20)
		begin := time.Now()
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome {
			time.Sleep(100 * time.Millisecond) // virtual
			return succeed
		})
		after(10 * time.Second)
		for _, id := range suspects {
			l.expect(id, job.Done, 0, 1)
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

// A process that is never empty runs no suspect, and waiting for it to become
// so must not take all of the others' time, however many suspects there are.
func TestP8_SuspectsInABusyProcessDoNotStopTheOthers(t *testing.T) {
	inLab(t, func(l *lab) {
		long := make(chan struct{})
		p := l.run(4, func(_ context.Context, t *runner.Task) job.Outcome {
			if t.Job.Priority == 1 {
				<-long
			}
			time.Sleep(time.Second) // virtual
			return succeed
		})
		l.add(1, func(d *job.Draft) { d.Priority = 1 }, p)
		after(time.Second)
		l.lostJobs(10)
		after(31 * time.Second) // the first suspect has waited in vain
		others := l.add(30, nil, p)
		after(15 * time.Second)
		for _, id := range others {
			l.expect(id, job.Done, 0, 0)
		}
		close(long)
		after(2 * time.Minute)
		if s := p.Stats(); s.Alone != 10 {
			t.Errorf("%d suspects ran in the end, want 10", s.Alone)
		}
		p.stop()
	})
}
