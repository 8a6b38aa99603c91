package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
)

// The context of a batch ends with those of all its jobs, and a run is over when
// its batch is, not before: Run would otherwise leave handlers behind and say nil.
func TestP7_AStopReachesABatchAndWaitsForIt(t *testing.T) {
	var seen record
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.HandleBatch(to, func(ctx context.Context, jobs []*pawl.Job[Email]) []error {
			<-ctx.Done()
			seen.add("%v", errors.Is(context.Cause(ctx), pawl.ErrStopping))
			time.Sleep(time.Second) // virtual: it takes its time
			seen.add("left")
			return make([]error, len(jobs))
		}, pawl.Batch[Email]{Size: 4, Wait: time.Second})
	}, func(t *testing.T, e *pawltest.Engine) {
		a, b := e.Enqueue(Email{To: "ann"}), e.Enqueue(Email{To: "bob"})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		time.Sleep(5 * time.Second) // virtual
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if seen.String() != "true left" {
			t.Errorf("saw %s", &seen)
		}
		e.RequireState(a.ID, job.Done) // P9: it was done all the same
		e.RequireState(b.ID, job.Done)
	})
}

func TestJ10_CancelOfOneJobLeavesItsBatchAlone(t *testing.T) {
	var begun, goOn chan struct{}
	pawltest.Run(t, func(to *pawl.Engine) {
		begun, goOn = make(chan struct{}), make(chan struct{})
		pawl.HandleBatch(to, func(ctx context.Context, jobs []*pawl.Job[Email]) []error {
			close(begun)
			<-goOn
			errs := make([]error, len(jobs))
			for i, j := range jobs {
				if errs[i] = context.Cause(ctx); j.Args.To == "ann" {
					errs[i] = errors.New("not sent")
				}
			}
			return errs
		}, pawl.Batch[Email]{Size: 4, Wait: time.Second})
	}, func(t *testing.T, e *pawltest.Engine) {
		a, b := e.Enqueue(Email{To: "ann"}), e.Enqueue(Email{To: "bob"})
		go func() {
			<-begun
			if c, err := e.Cancel(t.Context(), a.ID); c != pawl.Asked || err != nil {
				t.Error(c, err)
			}
			time.Sleep(time.Second) // virtual
			close(goOn)
		}()
		e.RunUntilIdle()
		e.RequireState(a.ID, job.Cancelled)
		e.RequireState(b.ID, job.Done)
	})
}

// Nil says that every job of the batch is done. A list that is too short says
// nothing of the jobs it leaves out, so it fails each of them.
func TestJ7_ABatchHandlerThatReturnsNilIsDoneWithAll(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer []error
		want   pawl.State
	}{
		{"nil", nil, pawl.StateDone},
		{"one of two", []error{nil}, pawl.StateDead},
		{"none of two", []error{}, pawl.StateDead},
	} {
		t.Run(c.name, func(t *testing.T) {
			pawltest.Run(t, func(to *pawl.Engine) {
				pawl.HandleBatch(to, func(ctx context.Context, jobs []*pawl.Job[Email]) []error {
					if len(jobs) != 2 {
						t.Errorf("a batch of %d", len(jobs))
					}
					return c.answer
				}, pawl.Batch[Email]{Size: 2, Wait: time.Second})
			}, func(t *testing.T, e *pawltest.Engine) {
				a, b := e.Enqueue(Email{To: "ann"}, pawl.Attempts(1)), e.Enqueue(Email{To: "bob"}, pawl.Attempts(1))
				e.RunUntilIdle()
				e.RequireState(a.ID, c.want)
				e.RequireState(b.ID, c.want)
			})
		})
	}
}

// A set of handlers can serve two engines; a batch is of one of them only, since
// its transaction and its context are.
func TestP8_BatchesOfTwoEnginesDoNotMix(t *testing.T) {
	var seen record
	var hs pawl.Handlers
	pawltest.Run(t, func(to *pawl.Engine) {
		hs = pawl.Handlers{}
		pawl.HandleBatch(&hs, func(ctx context.Context, jobs []*pawl.Job[Email]) []error {
			seen.add("%d", len(jobs))
			for _, j := range jobs {
				if _, err := pawl.EngineFrom(ctx).Get(ctx, j.ID); err != nil {
					t.Error(err) // the other engine's store has no such job
				}
			}
			return nil
		}, pawl.Batch[Email]{Size: 4, Wait: time.Second})
		to.Register(&hs)
	}, func(t *testing.T, e *pawltest.Engine) {
		other := newEngine()
		other.Register(&hs)
		if _, err := other.Enqueue(t.Context(), Email{To: "bob"}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- other.Run(ctx) }()
		e.Enqueue(Email{To: "ann"})
		e.RunUntilIdle()
		stop()
		if err := errors.Join(<-ended, other.Close()); err != nil {
			t.Error(err)
		}
	})
	if seen.String() != "1 1" {
		t.Errorf("batches of %s, want 1 1", &seen)
	}
}

// Size is more than can ever be there: every slot waits, so nothing more can come,
// and waiting on would be for nothing.
func TestJ7_ABatchThatAllSlotsWaitInStartsAtOnce(t *testing.T) {
	const wait = time.Hour
	for _, c := range []struct {
		name  string
		queue pawl.QueueConfig
		key   func(Email) string
		jobs  int
		want  string // sizes of the batches
		full  bool   // waits for Wait: more can come
	}{
		{"fewer workers than size", pawl.QueueConfig{Workers: 3}, nil, 6, "3 3", false},
		{"by key", pawl.QueueConfig{Workers: 4}, func(m Email) string { return m.To }, 4, "2 2", false},
		{"a portion of a total", pawl.QueueConfig{Workers: 10, Total: 2}, nil, 4, "2 2", false},
		{"a slot is free", pawl.QueueConfig{Workers: 4}, nil, 3, "3", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen record
			pawltest.Run(t, func(to *pawl.Engine) {
				pawl.HandleBatch(to, func(ctx context.Context, jobs []*pawl.Job[Email]) []error {
					seen.add("%d", len(jobs))
					return nil
				}, pawl.Batch[Email]{Size: 20, Wait: wait, Key: c.key})
			}, func(t *testing.T, e *pawltest.Engine) {
				for i := range c.jobs {
					e.Enqueue(Email{To: []string{"ann", "bob"}[i%2]})
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- e.Run(ctx) }()
				time.Sleep(wait / 2) // stimulus: virtual, in which nothing but a flush starts a batch
				synctest.Wait()
				if early := seen.String() == c.want; early == c.full {
					t.Errorf("batches of %q after half of Wait, want %q; waits for more: %v", &seen, c.want, c.full)
				}
				time.Sleep(wait) // stimulus: virtual
				synctest.Wait()
				if seen.String() != c.want {
					t.Errorf("batches of %q, want %q", &seen, c.want)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}, pawltest.Config(func(cfg *pawl.Config) { cfg.Queues = pawl.Queues{"default": c.queue} }))
		})
	}
}
