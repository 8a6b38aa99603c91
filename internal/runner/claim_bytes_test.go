package runner_test

import (
	"context"
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
