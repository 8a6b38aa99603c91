package runner_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// BenchmarkDrain counts whole jobs: claimed, run, and their end committed.
func BenchmarkDrain(b *testing.B) {
	b.Run("100 workers no-op", func(b *testing.B) { drain(b, 100, 0) })
	b.Run("4 workers 1ms", func(b *testing.B) { drain(b, 4, time.Millisecond) })
}

func drain(b *testing.B, workers int, work time.Duration) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	st, err := sqlite.File(filepath.Join(b.TempDir(), "bench.db")).Open(ctx, store.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	for left := b.N; left > 0; left -= 1000 {
		drafts := make([]job.Draft, min(left, 1000))
		for i := range drafts {
			drafts[i] = job.Draft{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 5, Args: []byte(`{"user_id":42,"name":"somebody","note":"about a hundred bytes of payload, as in the other benchmarks"}`)}
		}
		if _, err := st.Enqueue(ctx, drafts); err != nil {
			b.Fatal(err)
		}
	}
	var done atomic.Int64
	all := make(chan struct{})
	r, err := runner.New(runner.Config{
		Store:  st,
		Queues: []runner.QueueConfig{{Name: "q", Workers: workers}},
		Kinds: []runner.Kind{{Name: "k", Handler: handle(func(context.Context, *runner.Task) job.Outcome {
			if work > 0 {
				time.Sleep(work) // stimulus: a handler of known length
			}
			return succeed
		})}},
		Hooks: runner.Hooks{Finish: func(f runner.Finished) {
			if done.Add(1) == int64(b.N) {
				close(all)
			}
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	<-all
	b.StopTimer()
	s := r.Stats()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64(s.Claimed)/float64(s.Looks), "jobs/claim")
	if work > 0 {
		b.ReportMetric(float64(b.N)*work.Seconds()/float64(workers)/b.Elapsed().Seconds(), "of-ideal")
	}
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
