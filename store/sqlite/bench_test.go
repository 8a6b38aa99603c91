package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// These print jobs a second for one machine; ratios against peers are in bench/.

func benchStore(b *testing.B) *Store {
	b.Helper()
	s, err := File(filepath.Join(b.TempDir(), "work.db")).Open(context.Background(), store.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s.(*Store)
}

var benchArgs = []byte(`{"user_id":1234567,"template":"welcome","locale":"en","campaign":"spring-2026","trace":"4bf92f3577b34da6"}`)

func benchDraft() job.Draft {
	return job.Draft{ID: job.NewID(), Kind: "welcome", Queue: "default", Priority: 5, Attempts: 5, Args: benchArgs}
}

// cpu is the process's time on the processor, which a busy machine does not stretch as much as the clock.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkEnqueue(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("%d callers", callers), func(b *testing.B) {
			s := benchStore(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			before := cpu()
			for range callers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := s.Enqueue(context.Background(), []job.Draft{benchDraft()}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(cpu()-before)/1e3/float64(b.N), "cpu-µs/job")
		})
	}
	b.Run("by 100", func(b *testing.B) {
		s := benchStore(b)
		drafts := make([]job.Draft, 100)
		before := cpu()
		for range b.N {
			for i := range drafts {
				drafts[i] = benchDraft()
			}
			if _, err := s.Enqueue(context.Background(), drafts); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N*100)/b.Elapsed().Seconds(), "jobs/s")
		b.ReportMetric(float64(cpu()-before)/1e3/float64(b.N*100), "cpu-µs/job")
	})
}

// BenchmarkDrain claims and finishes in two calls that the writer may put into
// one commit, as the runner does.
func BenchmarkDrain(b *testing.B) {
	for _, size := range []int{100, 500} {
		for name, keep := range map[string]time.Duration{"kept": 0, "not kept": -1} {
			b.Run(fmt.Sprintf("by %d %s", size, name), func(b *testing.B) {
				s := benchStore(b)
				ctx := context.Background()
				for n := 0; n < b.N*size; n += 1000 {
					drafts := make([]job.Draft, 1000)
					for i := range drafts {
						drafts[i] = benchDraft()
					}
					if _, err := s.Enqueue(ctx, drafts); err != nil {
						b.Fatal(err)
					}
				}
				offer := job.Offer{Kinds: map[string]int{"welcome": 0}}
				w, err := s.Register(ctx, store.Worker{Queues: []string{"default"}, Offer: offer, LostAfter: time.Minute})
				if err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				before := cpu()
				var ends []job.End
				for i := range b.N + 1 {
					var wg sync.WaitGroup
					last := ends
					wg.Go(func() {
						if _, err := s.Finish(ctx, w, last); err != nil {
							b.Error(err)
						}
					})
					c, err := s.Claim(ctx, store.Claim{Worker: w, Seq: int64(i + 1), Offer: offer, Queues: []store.QueueClaim{{Queue: "default", Limit: size, Start: size}}})
					if err != nil {
						b.Fatal(err)
					}
					ends = make([]job.End, len(c.Jobs))
					for i, l := range c.Jobs {
						ends[i] = job.End{ID: l.ID, Run: l.Run, To: job.Done, Keep: job.Keep{Done: keep}}
					}
					wg.Wait()
				}
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "jobs/s")
				b.ReportMetric(float64(cpu()-before)/1e3/float64(b.N*size), "cpu-µs/job")
			})
		}
	}
}

// BenchmarkTx commits a row of the user's with a job: one flush each.
func BenchmarkTx(b *testing.B) {
	s := benchStore(b)
	ctx := context.Background()
	if _, err := s.DB().Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT)"); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		tx, err := s.DB().BeginTx(ctx, &sql.TxOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO orders (note) VALUES (?)", "x"); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Within(tx).Enqueue(ctx, []job.Draft{benchDraft()}); err != nil {
			b.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}
