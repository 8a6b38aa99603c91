//go:build soak

package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Eight people have three million jobs counted, each of them exactly, again and again, or look at counts and lists. Whoever
// enqueues meanwhile, one at a time or as fast as sixteen can, is at most twice as slow as alone.
func TestSoak_J35_ExactCountsDoNotStarveEnqueue(t *testing.T) {
	server := need.PostgresServer(t, "shared_buffers=256MB", "max_wal_size=4GB")
	s := openOn(t, server.URL(), Options{Schema: "pawl"}, store.Settings{})
	began := time.Now()
	exec(t, s, manyEnded, s.pg.Namespace, 3_000_000)
	exec(t, s, "VACUUM ANALYZE pawl.job, pawl.job_archive")
	t.Logf("the jobs were made in %v", time.Since(began).Round(time.Second))

	exact := func(ctx context.Context) {
		for last := []byte{}; last != nil && ctx.Err() == nil; {
			var err error
			if _, last, _, err = s.lists.Totals(ctx, last, 100_000); err != nil {
				return
			}
		}
	}
	lists := func(ctx context.Context) {
		_, _ = s.Counts(ctx)
		_, _ = s.Count(ctx, store.Filter{Tag: "none"}, 0)
		_, _ = s.List(ctx, store.Filter{Kind: "none"}, store.Page{Limit: 100})
	}
	const length = 2 * time.Second
	for _, callers := range []int{1, 16} {
		enqueued := func() float64 {
			var n atomic.Int64
			var all sync.WaitGroup
			begin := time.Now()
			for range callers {
				all.Go(func() {
					for time.Since(begin) < length {
						if _, err := s.Enqueue(t.Context(), []job.Draft{someDraft()}); err != nil {
							t.Error(err)
							return
						}
						n.Add(1)
					}
				})
			}
			all.Wait()
			return float64(n.Load()) / time.Since(begin).Seconds()
		}
		beside := func(read func(context.Context)) func() float64 {
			return func() float64 {
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						for ctx.Err() == nil {
							read(ctx)
						}
					})
				}
				defer all.Wait()
				defer cancel()
				return enqueued()
			}
		}
		enqueued() // warm
		ratios(t, fmt.Sprintf("%d enqueue beside 8 exact counts", callers), 5, enqueued, beside(exact), 0.5)
		ratios(t, fmt.Sprintf("%d enqueue beside 8 who look at counts and lists", callers), 5, enqueued, beside(lists), 0.5)
	}
}
