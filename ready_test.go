package pawl_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// deafStore answers everything but heartbeats.
type deafStore struct {
	store.Store
	deaf *atomic.Bool
}

func (d deafStore) Beat(ctx context.Context, b store.Beat) (store.BeatReply, error) {
	if d.deaf.Load() {
		return store.BeatReply{}, store.ErrUnavailable
	}
	return d.Store.Beat(ctx, b)
}

type deafOpener struct{ deaf *atomic.Bool }

func (d deafOpener) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	inner, err := sqlite.Memory().Open(ctx, s)
	return deafStore{inner, d.deaf}, err
}

func TestU13_ReadyMeansThatThisProcessCanWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deaf atomic.Bool
		e, err := pawl.New(deafOpener{&deaf}, pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		is := func(when, want string) {
			t.Helper()
			err := e.Ready(t.Context())
			if want == "" && err != nil || want != "" && (!errors.Is(err, pawl.ErrNotReady) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v", when, err)
			}
		}
		is("an engine that only enqueues", "")
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			<-ctx.Done() // the lease, then the end of the grace period
			return nil
		})
		is("before Run", "does not run")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		synctest.Wait()
		is("while it runs", "")
		deaf.Store(true)
		time.Sleep(time.Minute) // virtual
		is("without heartbeats", "lease")
		if err := e.Health(t.Context()); err != nil {
			t.Errorf("the store answers all the same: %v", err)
		}
		deaf.Store(false)
		time.Sleep(time.Minute) // virtual
		is("with heartbeats again", "")
		if _, err := e.Enqueue(t.Context(), Welcome{1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // virtual
		stop()
		synctest.Wait()
		is("while a handler has its grace", "stopping")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		is("after Run", "does not run")
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Ready(t.Context()); !errors.Is(err, pawl.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
