package runner_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
)

// What the slots could take at once does not come through the link before the
// call is given up. Claims ask for less until they are answered.
func TestP10_ClaimsOfLargeJobsOverASlowLinkEnd(t *testing.T) {
	inLab(t, func(l *lab) {
		const jobs, size, speed = 300, 100 << 10, 1 << 20
		p := l.run(150, func(context.Context, *runner.Task) job.Outcome { return succeed }, func(c *runner.Config) { c.Store.(*faults).speed = speed })
		ids := l.add(jobs, func(d *job.Draft) { d.Args = make([]byte, size) }, p)
		after(5 * time.Minute)
		for _, id := range ids {
			// It was sent a few times at most until that was found out.
			if j := l.expect(id, job.Done, 0, 0); j.Run > 4 {
				t.Errorf("a job needed %d runs", j.Run)
			}
		}
		p.stop()
	})
}

// One job that takes longer than a call may is given more time. It does not keep
// the others from running.
func TestP10_OneJobTooLargeForACallGetsMoreTime(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome { return succeed }, func(c *runner.Config) { c.Store.(*faults).speed = 10_000 })
		ids := l.add(1, func(d *job.Draft) { d.Priority, d.Args = 1, make([]byte, 200_000) })
		ids = append(ids, l.add(10, nil, p)...)
		after(10 * time.Minute)
		for _, id := range ids {
			l.expect(id, job.Done, 0, 0)
		}
		p.stop()
	})
}

// Each queue of a claim gets one job, however large: where there are many queues,
// claims ask for fewer of them until they are answered.
func TestP10_ManyQueuesOfLargeJobsOverASlowLinkEnd(t *testing.T) {
	inLab(t, func(l *lab) {
		const queues = 150
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome { return succeed }, func(c *runner.Config) {
			c.Queues = nil
			for i := range queues {
				c.Queues = append(c.Queues, runner.QueueConfig{Name: fmt.Sprint("q", i), Workers: 1, Backoff: job.NoBackoff})
			}
			c.Store.(*faults).speed = 1 << 20
		})
		n := 0
		ids := l.add(2*queues, func(d *job.Draft) {
			d.Queue, d.Args = fmt.Sprint("q", n%queues), make([]byte, 100<<10)
			n++
		}, p)
		after(10 * time.Minute)
		for _, id := range ids {
			l.expect(id, job.Done, 0, 0)
		}
		p.stop()
	})
}
