package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

func TestJ35_WaitReturnsTheJobOnceItHasEnded(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.HandleResult(to, func(context.Context, *pawl.Job[Encode]) (Video, error) {
			time.Sleep(10 * time.Second) // virtual: how long the job takes
			return Video{}, nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Encode{})
		type end struct {
			j   pawl.JobRecord
			err error
			at  time.Time
		}
		begin := time.Now()
		ended := make(chan end, 3)
		for range 3 {
			go func() {
				j, err := e.Wait(t.Context(), r.ID)
				ended <- end{j, err, time.Now()}
			}()
		}
		results := make(chan error, 1)
		go func() {
			_, err := pawl.Result[Video](t.Context(), e.Engine, r.ID, pawl.UntilEnded())
			results <- err
		}()
		e.Advance(time.Minute)
		for range 3 {
			got := <-ended
			if got.err != nil || got.j.State != job.Done {
				t.Errorf("%s, %v", got.j.State, got.err)
			}
			if took := got.at.Sub(begin); took < 10*time.Second || took > 11*time.Second {
				t.Errorf("it was told after %v, want the 10s of the job and half a second at most", took)
			}
		}
		if err := <-results; err != nil {
			t.Error(err)
		}
		if j, err := e.Wait(t.Context(), r.ID); err != nil || j.State != job.Done {
			t.Errorf("once it has ended: %s, %v", j.State, err)
		}
	})
}

func TestJ35_AWaitEndsWithItsContextOrTheEngine(t *testing.T) {
	e := newEngine()
	defer e.Close()
	if _, err := e.Wait(t.Context(), pawl.NewID()); !errors.Is(err, pawl.ErrNotFound) {
		t.Errorf("for a job that is not there: %v", err)
	}
	r, err := e.Enqueue(t.Context(), Welcome{1}, pawl.Queue("mail"))
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 2)
	go func() {
		_, err := e.Wait(ctx, r.ID)
		ended <- err
	}()
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("after its context ended: %v", err)
	}
	go func() {
		_, err := e.Wait(t.Context(), r.ID)
		ended <- err
	}()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, pawl.ErrClosed) {
		t.Errorf("after the engine was closed: %v", err)
	}
}
