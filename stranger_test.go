package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

// These are mistakes that a new user made: each was silent, or told wrongly.

// A handler that drops the error of the transaction in which it finished its job,
// and returns nil, has not done it: the effects are gone.
func TestP3_AJobIsNotDoneByATransactionThatWasRolledBack(t *testing.T) {
	var engine *pawl.Engine
	undone := errors.New("no")
	pawltest.Run(t, func(e *pawl.Engine) {
		engine = e
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			_ = engine.Tx(ctx, func(_ context.Context, tx *pawl.Tx) error {
				return errors.Join(tx.Finish(j), undone)
			})
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1}, pawl.Attempts(1))
		e.RunUntilIdle()
		j := e.RequireState(r.ID, job.Dead)
		if last, _ := j.Failures.Last(); !strings.Contains(last.Message, "was not committed") {
			t.Errorf("it failed with %q", last.Message)
		}
	})
}

func TestJ2_FinishingTwiceInOneTransactionSaysSo(t *testing.T) {
	var engine *pawl.Engine
	var second error
	pawltest.Run(t, func(e *pawl.Engine) {
		engine = e
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			return engine.Tx(ctx, func(_ context.Context, tx *pawl.Tx) error {
				err := tx.Finish(j)
				second = tx.Finish(j)
				return err
			})
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1})
		e.RunUntilIdle()
		e.RequireState(r.ID, job.Done)
		if !errors.Is(second, pawl.ErrInvalid) || !strings.Contains(second.Error(), "already") {
			t.Errorf("the second time: %v", second)
		}
	})
}

type hidden struct{ id int }

func (hidden) Kind() string { return "hidden" }

func TestJ1_ArgumentsThatNobodyCanSeeAreRefused(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		if _, err := e.Engine.Enqueue(t.Context(), hidden{42}); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "exported field") {
			t.Errorf("enqueue: %v", err)
		}
	})
}

func TestJ4_AnEmptyUniqueKeyIsRefused(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		if _, err := e.Engine.Enqueue(t.Context(), Welcome{1}, pawl.Unique(pawl.ByKey(""))); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("enqueue: %v", err)
		}
	})
}

// An operator's cancel is no failure, and pages nobody.
func TestJ28_ACancelledHandlerIsNotReportedAsAnError(t *testing.T) {
	var reported record
	var engine *pawl.Engine
	pawltest.Run(t, func(e *pawl.Engine) {
		engine = e
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if _, err := engine.Cancel(ctx, j.ID); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1})
		e.RunUntilIdle()
		e.RequireState(r.ID, job.Cancelled)
		if reported.String() != "" {
			t.Errorf("reported %s", &reported)
		}
	}, pawltest.Config(func(c *pawl.Config) {
		c.Hooks.Error = func(_ context.Context, _ *pawl.Info, err error, final bool) { reported.add("%v %v", err, final) }
	}))
}
