//go:build soak

package postgres

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
)

// known is a job that says when it was enqueued.
type known struct {
	At time.Time `json:"at"`
}

// Kind names it.
func (known) Kind() string { return "known" }

// TestSoak_J14_UnknownKindsInFront puts 200,000 jobs of a kind that nobody knows in
// front of a queue. Known ones that the worker's own process enqueues behind them,
// a thousand a second, each with a hint, all start soon.
func TestSoak_J14_UnknownKindsInFront(t *testing.T) {
	at := newSite(t, need.PostgresServer(t, "shared_buffers=256MB", "max_wal_size=4GB"), "a")
	at.exec(`INSERT INTO pawl.job (namespace, priority, state, id, due, created, max_attempts, queue, kind, args)
		SELECT $1, 5, 2, gen_random_uuid(), now() - interval '1 hour' + n * interval '1 millisecond', now(), 5, 'q', 'unknown', '{}'
		FROM generate_series(1, 200000) AS n`, at.s.pg.Namespace)
	var ran, slowest atomic.Int64
	pawl.Handle(at.e, func(_ context.Context, j *pawl.Job[known]) error {
		for took := int64(time.Since(j.Args.At)); ; {
			was := slowest.Load()
			if took <= was || slowest.CompareAndSwap(was, took) {
				break
			}
		}
		ran.Add(1)
		return nil
	})
	stop := at.work()
	first := known{time.Now()}
	if _, err := at.e.Enqueue(t.Context(), first, pawl.Queue("q")); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ran.Load() == 0 { // the first one has to pass all of them
		<-tick.C
	}
	t.Logf("the first one began after %v", time.Duration(slowest.Swap(0)))
	sent := int64(1)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); sent++ {
		<-tick.C // stimulus: a thousand a second
		if _, err := at.e.Enqueue(t.Context(), known{time.Now()}, pawl.Queue("q")); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(10 * time.Second); ran.Load() < sent && time.Now().Before(end); {
		<-tick.C
	}
	stop()
	t.Logf("%d of %d known jobs ran behind 200,000 of an unknown kind, the slowest began after %v", ran.Load(), sent, time.Duration(slowest.Load()))
	if ran.Load() != sent || time.Duration(slowest.Load()) > 3*time.Second {
		t.Errorf("%d of %d ran, the slowest began after %v", ran.Load(), sent, time.Duration(slowest.Load()))
	}
}

// TestSoak_J14_MillionsOfUnknownKindsInFront puts three million jobs of a kind that nobody knows in front of a queue at work,
// and tells nobody. Known ones behind them, of its own process and of another, start within 0.2 s, and what claims visit
// meanwhile is bounded.
func TestSoak_J14_MillionsOfUnknownKindsInFront(t *testing.T) {
	const unknown, seconds, entries = 3_000_000, 30, 20_000
	at := newSite(t, need.PostgresServer(t, "shared_buffers=512MB", "max_wal_size=8GB"), "a")
	other, err := pawl.New(Pool(newPool(t, at.users.Config().ConnString()), Options{Schema: "pawl"}), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	began := make(chan time.Duration, 1)
	pawl.Handle(at.e, func(_ context.Context, j *pawl.Job[known]) error {
		began <- time.Since(j.Args.At)
		return nil
	})
	stop := at.work()
	defer stop()
	read := func() (n int64) {
		t.Helper()
		const of = `SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'job_ready'`
		if err := at.users.QueryRow(t.Context(), of).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	send := func(when string) (visited float64) {
		var slowest time.Duration
		before, from := read(), time.Now()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for n := range 5 * seconds {
			<-tick.C // stimulus: five a second
			by := at.e
			if n%2 == 1 {
				by = other
			}
			if _, err := by.Enqueue(t.Context(), known{time.Now()}, pawl.Queue("q")); err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, <-began)
		}
		visited = float64(read()-before) / time.Since(from).Seconds()
		t.Logf("%s: the slowest of %d began after %v, %.0f entries visited a second", when, 5*seconds, slowest.Round(100*time.Microsecond), visited)
		if slowest > 200*time.Millisecond {
			t.Errorf("%s the slowest began after %v", when, slowest)
		}
		return visited
	}
	send("before")
	at.exec(`INSERT INTO pawl.job (namespace, priority, state, id, due, created, max_attempts, queue, kind, args)
		SELECT $1, 5, 2, gen_random_uuid(), now() - interval '1 hour' + n * interval '1 millisecond', now(), 5, 'q', 'unknown', '{}'
		FROM generate_series(1, $2::int) AS n`, at.s.pg.Namespace, unknown)
	at.exec("VACUUM ANALYZE pawl.job")
	time.Sleep(2 * claims.SweepEvery) // stimulus: sweeps come upon them
	if n := send("beside three million that nobody knows"); n > entries {
		t.Errorf("%.0f entries a second, want %d at most", n, entries)
	}
}

// TestSoak_P10_HintsOfADay starts a worker where five million hints were left
// while none ran. What it finds to do is done at once, and the hints go.
func TestSoak_P10_HintsOfADay(t *testing.T) {
	at := newSite(t, need.PostgresServer(t, "shared_buffers=256MB", "max_wal_size=4GB"), "a")
	const hints, jobs = 5_000_000, 5_000
	at.exec(`INSERT INTO pawl.hint (namespace, transaction, priority, due, queue)
		SELECT $1, (n % 700 + 4)::text::xid8, 5, now(), 'q' FROM generate_series(1, $2::int) AS n ORDER BY n % 700`, at.s.pg.Namespace, hints)
	at.exec("VACUUM ANALYZE pawl.hint")
	for range jobs / 1000 {
		if _, err := at.s.Enqueue(t.Context(), many(1000)); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	stop := at.work()
	for range jobs {
		<-at.ran
	}
	took := time.Since(begin)
	t.Logf("%d jobs ran within %v of the start, beside %d hints", jobs, took, hints)
	if took > 10*time.Second {
		t.Errorf("%d jobs took %v", jobs, took)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	left := hints
	for end := begin.Add(5 * time.Minute); left > 0 && time.Now().Before(end); <-tick.C {
		if err := at.users.QueryRow(t.Context(), at.s.pg.SQL("SELECT count(*) FROM pawl.hint")).Scan(&left); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d hints were left after %v", left, time.Since(begin))
	if left > 0 {
		t.Errorf("%d hints are left", left)
	}
	stop()
}

// TestSoak_J12_SuspectsBesideLongHandlers runs two processes whose handlers take
// 4 to 8 seconds and never leave them empty. Jobs that were lost twice run
// all the same, and the others go on.
func TestSoak_J12_SuspectsBesideLongHandlers(t *testing.T) {
	server := need.PostgresServer(t)
	a := newSite(t, server, "a")
	b, err := pawl.New(Pool(newPool(t, a.users.Config().ConnString()), Options{Schema: "pawl"}), pawl.Config{Queues: pawl.Queues{"slow": {Workers: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := pawl.New(Pool(newPool(t, a.users.Config().ConnString()), Options{Schema: "pawl"}), pawl.Config{Queues: pawl.Queues{"slow": {Workers: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	const suspects, others = 4, 200
	var ran, beside atomic.Int64
	for _, e := range []*pawl.Engine{b, c} {
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[noop]) error {
			if j.Priority == 1 {
				ran.Add(1)
				return nil
			}
			hints.Wait(ctx, time.Duration(4000+500*(beside.Add(1)%9))*time.Millisecond) // stimulus: a handler that takes long
			return nil
		})
	}
	for range others {
		if _, err := b.Enqueue(t.Context(), noop{}, pawl.Queue("slow")); err != nil {
			t.Fatal(err)
		}
	}
	for range suspects {
		if _, err := b.Enqueue(t.Context(), noop{}, pawl.Queue("slow"), pawl.Priority(1), pawl.In(3*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	a.exec("UPDATE pawl.job SET lost = $1, rescues = $1 WHERE priority = 1", job.SuspectLost)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, e := range []*pawl.Engine{b, c} {
		go func() { ended <- e.Run(ctx) }()
	}
	begin := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ran.Load() < suspects && time.Since(begin) < 3*time.Minute {
		<-tick.C
	}
	took := time.Since(begin)
	t.Logf("%d of %d suspects ran within %v, beside %d others", ran.Load(), suspects, took, beside.Load())
	if ran.Load() != suspects {
		t.Error("suspects starve")
	}
	if least := int64(took.Seconds()); beside.Load() < least { // ten slots of six seconds begin 1.6 a second
		t.Errorf("%d others began meanwhile, want %d", beside.Load(), least)
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for _, e := range []*pawl.Engine{b, c} {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
