package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

type Pack struct{ Order int }

func (Pack) Kind() string { return "pack" }

// What a run hands to its end comes with it, also with the end that is part of a
// transaction, and with no other.
func TestJ33_FollowUpsComeWithTheEnd(t *testing.T) {
	fail := true
	var packed record
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if _, err := j.Then(Pack{int(j.Run)}); err != nil {
				return err
			}
			switch {
			case fail:
				fail = false
				return errors.New("no luck")
			case j.Args.UserID == 2:
				return to.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error { return tx.Finish(j) })
			}
			return nil
		}, pawl.Backoff(pawl.Constant(time.Minute)))
		pawl.Handle(to, func(_ context.Context, j *pawl.Job[Pack]) error {
			packed.add("%d", j.Args.Order)
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		first := e.Enqueue(Welcome{1})
		e.RunUntilIdle()
		e.RequireState(first.ID, job.Waiting)
		if packed.String() != "" {
			t.Errorf("a run that failed left %s behind", &packed)
		}
		e.Advance(2 * time.Minute)
		e.RunUntilIdle()
		e.RequireState(first.ID, job.Done)
		second := e.Enqueue(Welcome{2})
		e.RunUntilIdle()
		e.RequireState(second.ID, job.Done)
		if want := "2 1"; packed.String() != want {
			t.Errorf("packed %s, want %s", &packed, want)
		}
	})
}

func TestJ33_FollowUpsAreCheckedAtOnce(t *testing.T) {
	var made pawl.Job[Welcome]
	if _, err := made.Then(Pack{1}); err == nil || !strings.Contains(err.Error(), "made by hand") {
		t.Errorf("of a job that was made by hand: %v", err)
	}
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if _, err := j.Then(Pack{1}, pawl.Priority(77)); err == nil || !strings.Contains(err.Error(), "priority") {
				t.Errorf("with a priority that is none: %v", err)
			}
			for n := range job.MaxFollowUps {
				if _, err := j.Then(Pack{n}, pawl.Queue("elsewhere")); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := j.Then(Pack{1}); err == nil || !strings.Contains(err.Error(), "at most 1000") {
				t.Errorf("one more: %v", err)
			}
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1})
		e.RunUntilIdle()
		e.RequireState(r.ID, job.Done)
		if n, err := e.Count(t.Context(), pawl.Filter{Queue: "elsewhere"}, 0); err != nil || n.Jobs != job.MaxFollowUps {
			t.Errorf("%d follow-ups, %v", n.Jobs, err)
		}
	})
}

// A run that has ended hands nothing over, and says so.
func TestJ33_NothingIsHandedOverAfterTheEnd(t *testing.T) {
	e := newEngine()
	defer e.Close()
	var after error
	ran := make(chan *pawl.Job[Welcome], 1)
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
		defer func() { ran <- j }()
		return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			if err := tx.Finish(j); err != nil {
				return err
			}
			_, after = j.Then(Welcome{2})
			return nil
		})
	})
	if _, err := e.Enqueue(t.Context(), Welcome{1}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	j := <-ran
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	_, late := j.Then(Welcome{3})
	for _, err := range []error{after, late} {
		if !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("Then of a run that has ended: %v, want an error", err)
		}
	}
}
