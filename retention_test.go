package pawl_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

func TestJ15_EachQueueKeepsItsJobsForItsOwnTime(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if j.Args.UserID == 2 {
				return pawl.Dead(errors.New("no such user"))
			}
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		done := e.Enqueue(Welcome{1})
		dead := e.Enqueue(Welcome{2})
		short := e.Enqueue(Welcome{1}, pawl.Queue("short"))
		none := e.Enqueue(Welcome{1}, pawl.Queue("none"))
		always := e.Enqueue(Welcome{1}, pawl.Queue("always"))
		e.RunUntilIdle()
		there := func(after string, want ...bool) {
			t.Helper()
			for i, r := range []pawl.Receipt{done, dead, short, none, always} {
				_, err := e.Get(t.Context(), r.ID)
				if (err == nil) != want[i] || err != nil && !errors.Is(err, pawl.ErrNotFound) {
					t.Errorf("after %s: job %d: %v", after, i, err)
				}
			}
		}
		there("the end", true, true, true, false, true)
		if r := e.Enqueue(Welcome{1}, pawl.Queue("none"), pawl.WithID(none.ID)); !r.Duplicate || r.ID != none.ID {
			t.Errorf("a resend of a job that is not kept: %+v", r)
		}
		e.Advance(2 * time.Hour)
		there("2 hours", true, true, false, false, true)
		e.Advance(8 * 24 * time.Hour)
		there("8 days", false, true, false, false, true)
		e.Advance(31 * 24 * time.Hour)
		there("39 days", false, false, false, false, true)
		if r := e.Enqueue(Welcome{1}, pawl.Queue("none"), pawl.WithID(none.ID)); r.Duplicate {
			t.Errorf("the tombstone is still there: %+v", r)
		}
		e.RunUntilIdle()
		e.RequireState(always.ID, job.Done)
	}, pawltest.Config(func(c *pawl.Config) {
		c.Queues["short"] = pawl.QueueConfig{Workers: 1, KeepDone: time.Hour}
		c.Queues["none"] = pawl.QueueConfig{Workers: 1, KeepDone: pawl.KeepNone}
		c.Queues["always"] = pawl.QueueConfig{Workers: 1, KeepDone: math.MaxInt64}
	}))
}

func TestJ7_BackoffIsPerKindThenPerQueueThenTheEngines(t *testing.T) {
	var seen record
	pawltest.Run(t, func(to *pawl.Engine) {
		fail := func(j *pawl.Info) error {
			seen.add("%s/%s@%v", j.Queue, j.Kind, time.Since(pawltestBegin))
			return errors.New("no luck")
		}
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error { return fail(&j.Info) })
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Ship]) error { return fail(&j.Info) }, pawl.Backoff(pawl.Constant(time.Minute)))
	}, func(t *testing.T, e *pawltest.Engine) {
		for _, args := range []pawl.Args{Welcome{1}, Ship{1}} {
			for _, q := range []string{"own", "default"} {
				e.Enqueue(args, pawl.Queue(q), pawl.Attempts(2))
			}
		}
		e.Enqueue(Welcome{1}, pawl.Queue("once")) // no retries at all
		e.Advance(time.Hour)
		var later []string
		for _, line := range seen.lines {
			if line[len(line)-3:] != "@0s" {
				later = append(later, line)
			}
		}
		if want := "[default/welcome@10s own/welcome@20s own/ship@1m0s default/ship@1m0s]"; len(seen.lines) != 9 || len(later) != 4 ||
			later[0] != "default/welcome@10s" || later[1] != "own/welcome@20s" || later[2][len(later[2])-9:] != "ship@1m0s" || later[3][len(later[3])-9:] != "ship@1m0s" {
			t.Errorf("ran %v, later %v, want %s", seen.lines, later, want)
		}
	}, pawltest.Config(func(c *pawl.Config) {
		c.Backoff = pawl.Constant(10 * time.Second)
		c.Queues["own"] = pawl.QueueConfig{Workers: 1, Backoff: pawl.Constant(20 * time.Second)}
		c.Queues["once"] = pawl.QueueConfig{Workers: 1, Attempts: 1}
	}))
}
