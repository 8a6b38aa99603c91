package pawltest_test

import (
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store/sqlite"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" { // a child, whose test fails and leaves things behind: that is what its parent looks at
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

type welcome struct {
	User int `json:"user"`
}

func (welcome) Kind() string { return "welcome" }

type ship struct {
	Order int `json:"order"`
}

func (ship) Kind() string { return "ship" }

// register is what a user's module would export: its handlers, which enqueue through the engine they are added to.
func register(e *pawl.Engine) {
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[welcome]) error {
		_, err := e.Enqueue(ctx, ship{Order: j.Args.User * 7}, pawl.In(time.Hour))
		return err
	})
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[ship]) error {
		time.Sleep(10 * time.Minute) // virtual
		return ctx.Err()
	})
}

func TestU10_RunUntilIdleLeavesWhatIsDueLater(t *testing.T) {
	pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(welcome{1})
		e.RequireState(r.ID, job.Waiting) // nothing runs between calls
		e.RunUntilIdle()
		e.RequireState(r.ID, job.Done)
		if j := e.RequireEnqueued(ship{Order: 7}); j.State != job.Waiting {
			t.Errorf("ship is %s", j.State)
		}
	})
}

func TestU10_AdvanceRunsWhatFallsDueAtItsTime(t *testing.T) {
	pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
		began := time.Now()
		e.Enqueue(welcome{1})
		e.Advance(59 * time.Minute)
		if j := e.RequireEnqueued(ship{Order: 7}); j.State != job.Waiting {
			t.Errorf("ship is %s after 59 minutes", j.State)
		}
		e.Advance(time.Minute)
		j := e.RequireEnqueued(ship{Order: 7})
		if j.State != job.Done || j.Started.Sub(began) < time.Hour || j.Started.Sub(began) > time.Hour+time.Second {
			t.Errorf("ship is %s, started after %v", j.State, j.Started.Sub(began))
		}
	})
}

func TestU10_IdleDoesNotWaitForWhatNobodyRuns(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		began := time.Now()
		r := e.Enqueue(welcome{1}, pawl.Queue("elsewhere"))
		unknown := e.Enqueue(ship{1})
		later := e.Enqueue(ship{2}, pawl.In(time.Second))
		e.RunUntilIdle()
		for _, id := range []job.ID{r.ID, unknown.ID, later.ID} {
			e.RequireState(id, job.Waiting)
		}
		if passed := time.Since(began); passed > 100*time.Millisecond { // virtual
			t.Errorf("idle after %v", passed)
		}
	})
}

// A queue that cools down is idle, and Advance goes on when it has cooled down.
func TestU10_IdleLeavesAQueueThatCoolsDown(t *testing.T) {
	register := func(e *pawl.Engine) {
		pawl.Handle(e, func(_ context.Context, j *pawl.Job[welcome]) error {
			if j.Throttles == 0 {
				return pawl.Throttled(time.Minute)
			}
			return nil
		})
	}
	pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
		id, began := e.Enqueue(welcome{1}).ID, time.Now()
		e.RunUntilIdle()
		if took := time.Since(began); took > 10*time.Second { // virtual
			t.Errorf("idle after %v", took)
		}
		e.RequireState(id, pawl.StateWaiting)
		e.Advance(2 * time.Minute)
		if j := e.RequireState(id, pawl.StateDone); j.Finished.Sub(j.Created) > 70*time.Second {
			t.Errorf("done after %v", j.Finished.Sub(j.Created))
		}
	})
	pawltest.Real(t, sqlite.Memory(), register, func(t *testing.T, e *pawltest.Engine) {
		id := e.Enqueue(welcome{1}).ID
		e.RunUntilIdle() // else a standstill
		e.RequireState(id, pawl.StateWaiting)
	}, pawltest.Standstill(5*time.Second))
}
