package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
)

var benchArgs = []byte(`{"user_id":123456789,"template":"welcome","language":"en","note":"about one hundred bytes in all"}`)

func benchStore(b *testing.B) store.Store {
	b.Helper()
	db := need.Postgres(b)
	s, err := postgres.Pool(pool(b, db), postgres.Options{Schema: db.Schema}).Open(b.Context(), store.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func plainDraft() job.Draft {
	return job.Draft{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 5, Args: benchArgs}
}

// BenchmarkEnqueue sends one job at a time from many goroutines.
func BenchmarkEnqueue(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			s := benchStore(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			done := make(chan error, callers)
			b.ResetTimer()
			for range callers {
				go func() {
					for left.Add(-1) >= 0 {
						if _, err := s.Enqueue(context.Background(), []job.Draft{plainDraft()}); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for range callers {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkBulk sends many jobs at a time.
func BenchmarkBulk(b *testing.B) {
	for _, size := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := benchStore(b)
			b.ResetTimer()
			for range b.N {
				drafts := make([]job.Draft, size)
				for i := range drafts {
					drafts[i] = plainDraft()
				}
				if _, err := s.Enqueue(context.Background(), drafts); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkDrain claims and finishes, one batch after the other; jobs are the unit.
func BenchmarkDrain(b *testing.B) {
	for _, size := range []int{1, 100, 500, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := benchStore(b)
			ctx := context.Background()
			for sent := 0; sent < b.N; sent += 10_000 {
				drafts := make([]job.Draft, min(10_000, b.N-sent))
				for i := range drafts {
					drafts[i] = plainDraft()
				}
				if _, err := s.Enqueue(ctx, drafts); err != nil {
					b.Fatal(err)
				}
			}
			w, err := s.Register(ctx, store.Worker{Queues: []string{"q"}, LostAfter: 1 << 50})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for n, seq := 0, int64(1); n < b.N; seq++ {
				claimed, err := s.Claim(ctx, store.Claim{Worker: w, Seq: seq, Offer: job.Offer{Kinds: map[string]int{"k": 0}},
					Queues: []store.QueueClaim{{Queue: "q", Limit: size, Start: size}}})
				if err != nil {
					b.Fatal(err)
				}
				ends := make([]job.End, len(claimed.Jobs))
				for i := range ends {
					ends[i] = job.End{ID: claimed.Jobs[i].ID, Run: claimed.Jobs[i].Run, To: job.Done}
				}
				if _, err := s.Finish(ctx, w, ends); err != nil {
					b.Fatal(err)
				}
				n += len(ends)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
