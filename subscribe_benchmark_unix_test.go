//go:build unix

package pawl_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Measured is an event as bench has them.
type Measured struct {
	Seq  int64  `json:"seq"`
	User string `json:"user"`
	Note string `json:"note"`
}

// It is about what a group costs its process: ratios to others are in bench/.
func BenchmarkSubscribe(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { consumeBacklog(b, sqlite.File(filepath.Join(b.TempDir(), "work.db"))) })
	b.Run("postgres", func(b *testing.B) {
		db := need.Postgres(b)
		pool, err := pgxpool.New(b.Context(), db.URL)
		if err != nil {
			b.Fatal(err)
		}
		defer pool.Close()
		consumeBacklog(b, postgres.Pool(pool, postgres.Options{Schema: db.Schema}))
	})
}

func consumeBacklog(b *testing.B, o store.Opener) {
	e, err := pawl.New(o, pawl.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	for left := b.N; left > 0; left -= 1000 {
		items := make([]pawl.EventItem, min(left, 1000))
		for i := range items {
			items[i] = pawl.NewEvent("measured", Measured{int64(i), "somebody@example.com", "what one writes into a small event"})
		}
		if _, err := e.PublishMany(context.Background(), items...); err != nil {
			b.Fatal(err)
		}
	}
	var seen atomic.Int64
	over := make(chan struct{})
	s := pawl.Subscribe(e, "g", "measured", func(context.Context, *pawl.Message[Measured]) error {
		if seen.Add(1) == int64(b.N) {
			close(over)
		}
		return nil
	}, pawl.Fetch(256), pawl.InFlight(512))
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	<-over
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
	b.StopTimer()
	b.ReportMetric(float64(b.N)/float64(s.Stats().Turns), "events/turn")
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// processorTime is what this process has had of the processors, which a busy machine does not stretch as much as the clock.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
