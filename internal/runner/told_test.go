package runner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// A run that ends in its own transaction while the engine stops is the last one: only the hook is left to be told, and
// Run returns then, not when its patience with the store has run out.
func TestP7_StopDoesNotWaitForARunThatEndedInItsTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, first := make(chan struct{}), true
		e, err := pawl.New(sqlite.Memory(), pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 2}},
			Hooks: pawl.Hooks{Finish: func(pawl.Finished) {
				if first { // holds up the loop that tells of the second run
					first = false
					<-told
				}
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		run, stop := context.WithCancel(t.Context())
		defer stop()
		pawl.HandleRaw(e, "first", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
		pawl.HandleRaw(e, "second", func(ctx context.Context, j *pawl.Job[pawl.Raw]) error {
			stop()
			time.Sleep(time.Second)
			return e.Tx(ctx, func(_ context.Context, tx *pawl.Tx) error { return tx.Finish(j) })
		})
		ended := make(chan time.Time, 1)
		go func() {
			if err := e.Run(run); err != nil {
				t.Errorf("run: %v", err)
			}
			ended <- time.Now()
		}()
		for _, kind := range []string{"first", "second"} {
			if _, err := e.Enqueue(t.Context(), pawl.RawArgs(kind, nil)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		released := time.Now()
		close(told)
		if waited := (<-ended).Sub(released); waited > 0 {
			t.Errorf("Run returned %v after all was told", waited)
		}
	})
}
