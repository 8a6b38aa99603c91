package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store"
)

func TestJ28_TheErrorHookKnowsWhetherTheFailureIsFinal(t *testing.T) {
	for name, c := range map[string]struct {
		work func(ctx context.Context) error
		opts []pawl.EnqueueOption
		want string
	}{
		"attempts left":   {func(context.Context) error { return errors.New("a") }, opts(pawl.Attempts(2)), "false true"},
		"dead":            {func(context.Context) error { return pawl.Dead(errors.New("a")) }, nil, "true"},
		"panic":           {func(context.Context) error { panic("a") }, opts(pawl.Attempts(1)), "true"},
		"store fault":     {func(context.Context) error { return fmt.Errorf("a: %w", store.ErrBusy) }, opts(pawl.Attempts(1), pawl.Deadline(pawltestBegin.Add(3*time.Second))), "false false"},
		"deadline passes": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, opts(pawl.Deadline(pawltestBegin.Add(time.Minute))), "true"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen record
			pawltest.Run(t, func(to *pawl.Engine) {
				pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error { return c.work(ctx) }, pawl.Backoff(pawl.Constant(0)))
			}, func(t *testing.T, e *pawltest.Engine) {
				r := e.Enqueue(Welcome{1}, c.opts...)
				e.Advance(time.Hour)
				e.RequireState(r.ID, job.Dead)
				if seen.String() != c.want {
					t.Errorf("final: %s, want %s", &seen, c.want)
				}
			}, pawltest.Config(func(c *pawl.Config) {
				c.Hooks.Error = func(ctx context.Context, j *pawl.Info, err error, final bool) { seen.add("%v", final) }
			}))
		})
	}
}

// pawltestBegin is when virtual time begins.
var pawltestBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestP8_PanickingErrorHookChangesNoOutcome(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error { return pawl.Dead(errors.New("no such user")) })
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1})
		e.RunUntilIdle()
		if j := e.RequireState(r.ID, job.Dead); j.Run != 1 || j.Failures.List()[0].Message != "no such user" {
			t.Errorf("kept %+v", j)
		}
	}, pawltest.Config(func(c *pawl.Config) {
		c.Hooks.Error = func(context.Context, *pawl.Info, error, bool) { panic("hook") }
	}))
}

func TestJ28_TheGoroutinesOfAHandlerShareItsLog(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() { j.Log().Info("part", "n", i) })
			}
			all.Wait()
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1})
		e.RunUntilIdle()
		if lines, err := e.Logs(t.Context(), r.ID, 0, 100); err != nil || len(lines) != 8 {
			t.Errorf("%d lines, %v", len(lines), err)
		}
	})
}
