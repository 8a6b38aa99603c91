package batch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/batch"
)

// Flush starts what waits of its key, and of no other.
func TestB2_FlushMakesWhatWaitsReady(t *testing.T) {
	for _, c := range []struct {
		name         string
		policy       batch.Policy
		first, other time.Duration // how long their items wait
	}{
		{"duration", batch.Duration(time.Minute), time.Second, time.Minute},
		{"size", batch.Size(), time.Second, 2 * time.Minute},
		{"a hard pace", batch.Duration(time.Minute).RejectWhenFull(), time.Minute, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := batch.New(func(_ context.Context, _ string, in []int) ([]int, error) { return in, nil },
					batch.Options{Policy: c.policy, MaxBatch: 10, MaxWait: 2 * time.Minute})
				begun := time.Now()
				waited := map[string]chan time.Duration{"a": make(chan time.Duration, 2), "b": make(chan time.Duration, 1)}
				for _, key := range []string{"a", "a", "b"} {
					go func() {
						if _, err := b.Do(t.Context(), key, 1); err != nil {
							t.Error(err)
						}
						waited[key] <- time.Since(begun)
					}()
				}
				time.Sleep(time.Second) // stimulus: virtual, all of them wait
				b.Flush("a")
				b.Flush("nobody's")
				if x, y := <-waited["a"], <-waited["a"]; x != c.first || x != y {
					t.Errorf("flushed items waited %v and %v, want %v", x, y, c.first)
				}
				if x := <-waited["b"]; x < c.other {
					t.Errorf("the item of another key waited %v, want %v", x, c.other)
				}
				if err := b.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
