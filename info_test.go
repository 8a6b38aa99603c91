package pawl_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

// deep stands for code far below a handler that is handed nothing but a context.
func deep(ctx context.Context) (*pawl.Engine, *pawl.Info) {
	return pawl.EngineFrom(ctx), pawl.InfoFrom(ctx)
}

func TestJ28_EngineAndInfoAreReachableFromTheContext(t *testing.T) {
	var seen record
	var in *pawl.Engine
	pawltest.Run(t, func(to *pawl.Engine) {
		in = to
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			e, i := deep(ctx)
			if e != in || i.ID != j.ID {
				t.Errorf("engine %p, job %v; want %p, %v", e, i.ID, in, j.ID)
			}
			messages := ""
			for _, f := range i.Failures {
				messages += f.Message + ","
			}
			seen.add("%d:%s%d", i.Attempt, messages, i.Snoozes)
			switch {
			case i.Attempt == 1:
				return errors.New("first")
			case i.Snoozes < 2:
				return pawl.Snooze(time.Second)
			case i.Attempt == 2:
				return errors.New("second")
			}
			return nil
		}, pawl.Backoff(pawl.Constant(time.Second)))
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1})
		e.Advance(time.Minute)
		e.RequireState(r.ID, job.Done)
		if want := "1:0 2:first,0 2:first,1 2:first,2 3:first,second,2"; seen.String() != want {
			t.Errorf("saw %s, want %s", &seen, want)
		}
	})
	if e, i := deep(t.Context()); e != nil || i == nil || i.ID != (pawl.ID{}) {
		t.Errorf("outside of a handler: %v, %v", e, i)
	}
}

func TestJ28_ABatchHandlerReachesItsEngine(t *testing.T) {
	var in, got *pawl.Engine
	pawltest.Run(t, func(to *pawl.Engine) {
		in = to
		pawl.HandleBatch(to, func(ctx context.Context, jobs []*pawl.Job[Email]) []error {
			var i *pawl.Info
			if got, i = deep(ctx); i.ID != (pawl.ID{}) {
				t.Errorf("a batch passes for job %v", i.ID)
			}
			return nil
		}, pawl.Batch[Email]{Size: 2})
	}, func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(Email{})
		e.RunUntilIdle()
	})
	if in == nil || got != in {
		t.Errorf("got engine %p, want %p", got, in)
	}
}

// A handler is a function of a job: a unit test calls it with one made by hand.
func TestAJobMadeByHandWorksInAUnitTest(t *testing.T) {
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	handler := func(ctx context.Context, j *pawl.Job[Welcome]) error {
		j.Log().Info("sending", "user", j.Args.UserID)
		if j.ID != (pawl.ID{}) || j.Attempt != 0 || j.Headers() != nil || len(j.Failures) != 0 {
			t.Errorf("made up %+v", j.Info)
		}
		return j.Progress(ctx, 1, 2)
	}
	if err := handler(t.Context(), &pawl.Job[Welcome]{Args: Welcome{42}}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "sending") || !strings.Contains(log.String(), "user=42") {
		t.Errorf("logged %q", &log)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(pawl.ErrStopping)
	if err := handler(ctx, &pawl.Job[Welcome]{}); !errors.Is(err, pawl.ErrStopping) {
		t.Errorf("progress: %v", err)
	}
	retry := &pawl.Job[Welcome]{Info: pawl.Info{Attempt: 3, Failures: []pawl.Failure{{Message: "no luck"}}}}
	if retry.Attempt != 3 || retry.Failures[0].Message != "no luck" {
		t.Errorf("set fields came back as %+v", retry.Info)
	}
	e := newEngine()
	defer e.Close()
	err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
		return errors.Join(tx.Finish(retry), tx.FinishResult(retry, 1), tx.Finish(nil))
	})
	if !errors.Is(err, pawl.ErrInvalid) || strings.Count(err.Error(), "handler was given") != 3 {
		t.Errorf("finish: %v", err)
	}
}
