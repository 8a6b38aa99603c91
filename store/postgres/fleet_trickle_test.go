package postgres_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store/postgres"
)

// idle are engines of one namespace that have nothing to do, each with connections of its own, as processes have.
type idle struct {
	t       testing.TB
	engines []*pawl.Engine
	ran     chan int64 // the order of each job that a handler has seen
	pool    *pgxpool.Pool
}

// newIdle starts so many that beat each minute, and waits until all of them work and listen.
func newIdle(t testing.TB, url string, n int) *idle {
	t.Helper()
	f := &idle{t: t, ran: make(chan int64, 100)}
	open := func() *pgxpool.Pool {
		p, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	f.pool = open()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if report, err := f.engines[0].Check(context.Background(), pawl.CheckOptions{}); err != nil || report.Found > 0 {
			t.Errorf("check: %v, %v", report.Faults, err)
		}
		for _, e := range f.engines {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for range n {
		e, err := pawl.New(postgres.Pool(open(), postgres.Options{Connections: 3}), pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 2}}, Beat: time.Minute, LostAfter: 5 * time.Minute,
			MetricsEvery: time.Hour, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		pawl.Handle(e, func(_ context.Context, j *pawl.Job[Ship]) error {
			f.ran <- j.Args.Order
			return nil
		})
		f.engines = append(f.engines, e)
		running.Go(func() {
			if err := e.Run(ctx); err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	for _, e := range f.engines {
		for e.Ready(t.Context()) != nil {
			time.Sleep(10 * time.Millisecond) // stimulus: the next look whether it is ready
		}
	}
	return f
}

// trickle enqueues jobs one after the other, each when the one before it has ended, and counts the transaction numbers that
// the server gave meanwhile.
func (f *idle) trickle(jobs int, by func(i int) *pawl.Engine) (numbers int64) {
	f.t.Helper()
	before := f.number()
	for i := range jobs {
		e := by(i)
		r, err := e.Enqueue(f.t.Context(), Ship{Order: int64(i)})
		if err != nil {
			f.t.Fatal(err)
		}
		if got := <-f.ran; got != int64(i) {
			f.t.Fatalf("job %d ran, want %d", got, i)
		}
		if j, err := e.Wait(f.t.Context(), r.ID); err != nil || j.State != pawl.StateDone {
			f.t.Fatalf("job %d: %v, %v", i, j.State, err)
		}
	}
	return f.number() - before
}

func (f *idle) number() (n int64) {
	f.t.Helper()
	if err := f.pool.QueryRow(f.t.Context(), "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// TestP10_ATrickleCostsAFleetFewTransactions counts what single jobs cost the database in a fleet of twenty processes that
// have nothing else to do. What one of them enqueues begins in the commit that accepts it: that commit, and the one of its
// end. What somebody else enqueues wakes all of them: its commit, the one that tells, one claim, and its end; the nineteen
// that come too late write nothing.
func TestP10_ATrickleCostsAFleetFewTransactions(t *testing.T) {
	const processes, jobs = 20, 40
	server := need.PostgresServer(t, "autovacuum=off", "max_connections=200") // of its own: others would take numbers, too
	f := newIdle(t, server.URL(), processes)
	p, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	outside, err := pawl.New(postgres.Pool(p, postgres.Options{}), pawl.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	f.trickle(2*processes, func(i int) *pawl.Engine { return f.engines[i%processes] }) // they have begun
	// The least of three: on a machine with more to do than it can, looks for one job are under way when the next one comes.
	least := func(by func(i int) *pawl.Engine) int64 {
		return min(f.trickle(jobs, by), f.trickle(jobs, by), f.trickle(jobs, by))
	}
	own := least(func(i int) *pawl.Engine { return f.engines[i%processes] })
	others := least(func(int) *pawl.Engine { return outside })
	t.Logf("%d jobs took %d transaction numbers where the process that enqueues them works, %d where it does not", jobs, own, others)
	if own > 5*jobs/2 {
		t.Errorf("%d jobs took %d transaction numbers, want two each", jobs, own)
	}
	if others > 5*jobs { // who looked while the claim was on its way to the disk may have taken one for nothing
		t.Errorf("%d jobs from outside took %d transaction numbers, want four each", jobs, others)
	}
	for i, e := range f.engines {
		if n := e.Stats().HandedOver; n < jobs/processes {
			t.Errorf("%d jobs were handed over in process %d, want %d at least", n, i, jobs/processes)
		}
	}
}
