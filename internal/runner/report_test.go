package runner_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A standby that was promoted may miss the end of a run that the dead primary had
// answered for: it believes the run goes on. The worker reports what it holds as
// soon as it is answered again, and the job runs once more at once.
func TestJ32_AfterAFailureWhatIsHeldIsReportedAtOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		var forgotten atomic.Bool
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return succeed })
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "Finish" && forgotten.CompareAndSwap(false, true) {
					return errForgotten
				}
				return nil
			}
		})
		id := l.add(1, nil, p)[0]
		after(time.Second)
		l.expect(id, job.Running, 0, 0)
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "Beat" {
					return store.ErrUnavailable
				}
				return nil
			}
		})
		after(6 * time.Second) // one beat fails
		p.faults.set(func(f *faults) { f.before = nil })
		after(6 * time.Second) // the next succeeds; the regular report comes after 30 s
		l.expect(id, job.Done, 0, 0)
		p.stop()
	})
}

// errForgotten answers a finish as applied that the store does not know.
var errForgotten = errors.New("answered, and lost with the primary")
