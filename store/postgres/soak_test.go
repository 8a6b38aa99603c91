//go:build soak

package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgserver"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// These tests compare rates, so they need the time and the quiet of a soak. Each
// measures two databases of one server in turn: what else the machine does meets
// both. A row of theirs is the middle of its ratios.

// site is a database that is measured: by an engine where whole jobs run, by one
// hand on the store where only a part of that is looked at.
type site struct {
	t     *testing.T
	e     *pawl.Engine
	s     *Store
	users *pgxpool.Pool
	hand  *crew
	ran   chan struct{} // one for each job that the engine has run
}

// noop is a job that does nothing.
type noop struct{}

// Kind names it.
func (noop) Kind() string { return "k" }

// twoSites makes two databases on a server of the test's own, whose engines work
// under limits.
func twoSites(t *testing.T, limits ...pawl.Limit) (a, b *site) {
	server := need.PostgresServer(t, "shared_buffers=256MB", "max_wal_size=4GB",
		// What is slow says why: the plan, and how many entries it visited.
		"session_preload_libraries=auto_explain", "auto_explain.log_min_duration=300ms", "auto_explain.log_analyze=on", "auto_explain.log_timing=off",
		"auto_explain.log_buffers=on", "log_autovacuum_min_duration=300ms", "log_line_prefix=%m %d ")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", server.Log())
		}
		expectNoDeadlocks(t, server)
	})
	return newSite(t, server, "a", limits...), newSite(t, server, "b", limits...)
}

func newSite(t *testing.T, server *pgserver.Server, name string, limits ...pawl.Limit) *site {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	if _, err := connection.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	address := strings.Replace(server.URL(), "/postgres?", "/"+name+"?", 1)
	at := &site{t: t, users: newPool(t, address), ran: make(chan struct{}, 1000)}
	at.s = openOn(t, address, Options{Schema: "pawl"}, store.Settings{})
	at.hand = hire(t, at.s)
	at.e, err = pawl.New(Pool(newPool(t, address), Options{Schema: "pawl"}), pawl.Config{Queues: pawl.Queues{"q": {Workers: 100}}, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := at.e.Close(); err != nil {
			t.Error(err)
		}
	})
	pawl.Handle(at.e, func(context.Context, *pawl.Job[noop]) error { at.ran <- struct{}{}; return nil })
	return at
}

// expectNoDeadlocks looks at all databases of a server.
func expectNoDeadlocks(t *testing.T, server *pgserver.Server) {
	connection, err := pgx.Connect(context.Background(), server.URL())
	if err != nil {
		t.Error(err)
		return
	}
	defer connection.Close(context.Background())
	var deadlocks int
	if err := connection.QueryRow(context.Background(), "SELECT sum(deadlocks) FROM pg_stat_database").Scan(&deadlocks); err != nil || deadlocks != 0 {
		t.Errorf("%d deadlocks, %v, want none", deadlocks, err)
	}
}

func (a *site) exec(text string, args ...any) {
	a.t.Helper()
	if _, err := a.users.Exec(a.t.Context(), a.s.pg.SQL(text), args...); err != nil {
		a.t.Fatal(err)
	}
}

// fill hands in plain jobs.
func (a *site) fill(jobs int) {
	a.t.Helper()
	const batch = 2_000
	for n := 0; n < jobs; n += batch {
		a.hand.enqueue(many(min(batch, jobs-n))...)
	}
}

// work runs the engine. The function that is returned stops it.
func (a *site) work() (stop func()) {
	ctx, cancel := context.WithCancel(a.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.e.Run(ctx) }()
	return func() {
		a.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			a.t.Error(err)
		}
	}
}

// rate is how often something is done in a second.
func rate(n int, do func()) float64 {
	begin := time.Now()
	do()
	return float64(n) / time.Since(begin).Seconds()
}

// drained is the rate at which the engine works off a backlog of plain jobs.
func (a *site) drained(jobs int) float64 {
	a.t.Helper()
	return a.worksOff(jobs, a.fill)
}

// worksOff is the rate at which the engine works off what is handed in while its queue is paused.
func (a *site) worksOff(jobs int, fill func(jobs int)) float64 {
	a.t.Helper()
	if err := a.e.Queue("q").Pause(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	fill(jobs)
	return rate(jobs, func() {
		if err := a.e.Queue("q").Resume(a.t.Context()); err != nil {
			a.t.Fatal(err)
		}
		for range jobs {
			<-a.ran
		}
	})
}

// beside is the rate at which the engine works off what 16 goroutines of its
// process enqueue meanwhile, one at a time.
func (a *site) beside(jobs int) float64 {
	a.t.Helper()
	const callers = 16
	var all sync.WaitGroup
	defer all.Wait()
	return rate(jobs, func() {
		for range callers {
			all.Go(func() {
				for range jobs / callers {
					if _, err := a.e.Enqueue(a.t.Context(), noop{}, pawl.Queue("q")); err != nil {
						a.t.Error(err)
						return
					}
				}
			})
		}
		for range jobs / callers * callers {
			<-a.ran
		}
	})
}

// rescued is the rate at which the jobs of a lost worker are taken back.
func (a *site) rescued(jobs int) float64 {
	a.t.Helper()
	a.fill(jobs)
	died := hire(a.t, a.s)
	for held := 0; held < jobs; {
		held += len(died.claim(500))
	}
	a.exec("UPDATE pawl.worker SET lost = {now} WHERE id = $1", died.worker)
	r := rate(jobs, func() {
		for back := 0; back < jobs; {
			rescued, err := a.s.Rescue(a.t.Context(), 500)
			if err != nil || rescued.Total() == 0 {
				a.t.Fatalf("%d of %d jobs came back, %v", back, jobs, err)
			}
			back += rescued.Total()
		}
	})
	if n := a.hand.drain(500); n != jobs {
		a.t.Fatalf("%d jobs were drained, want the %d that came back", n, jobs)
	}
	return r
}

// looked is the rate of looks that find nothing ready, and when the next job falls due.
func (a *site) looked(looks int) float64 {
	a.t.Helper()
	later := someDraft()
	later.In = time.Hour
	a.hand.enqueue(later)
	r := rate(looks, func() {
		for range looks {
			if jobs := a.hand.claim(10); len(jobs) != 0 {
				a.t.Fatalf("%d jobs were claimed before they were due", len(jobs))
			}
		}
	})
	if _, err := a.s.Delete(a.t.Context(), []job.ID{later.ID}, store.Operator{Name: "soak"}); err != nil {
		a.t.Fatal(err)
	}
	return r
}

// ratios compares b with a in some rounds and wants the middle ratio to be at least so much.
func ratios(t *testing.T, what string, rounds int, a, b func() float64, least float64) {
	t.Helper()
	var all, was, is []float64
	for range rounds {
		x, y := a(), b()
		was, is, all = append(was, x), append(is, y), append(all, y/x)
	}
	got := middle(all)
	t.Logf("%s: %.0f/s beside %.0f/s, ratio %.2f, want %.2f (of %d rounds)", what, middle(is), middle(was), got, least, rounds)
	if got < least {
		t.Errorf("%s is at %.2f of its rate, want %.2f: %.0f/s beside %.0f/s", what, got, least, is, was)
	}
}

func middle(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// TestSoak_P10_HeldSnapshot keeps a snapshot open over everything that is done to
// one of two databases. Nobody can remove a dead row or index entry there, and
// they pile up; it costs at most a tenth.
func TestSoak_P10_HeldSnapshot(t *testing.T) {
	free, held := twoSites(t)
	defer held.holdSnapshot()()
	const jobs, least = 30_000, 0.9
	stops := []func(){free.work(), held.work()}
	for _, a := range []*site{free, held} { // the first rows are those that stay in the way
		a.drained(2 * jobs)
	}
	ratios(t, "drain", 7, func() float64 { return free.drained(jobs) }, func() float64 { return held.drained(jobs) }, least)
	ratios(t, "drain beside 16 who enqueue", 7, func() float64 { return free.beside(jobs) }, func() float64 { return held.beside(jobs) }, least)
	for _, stop := range stops {
		stop()
	}
	ratios(t, "rescue", 7, func() float64 { return free.rescued(5_000) }, func() float64 { return held.rescued(5_000) }, least)
	ratios(t, "look for what is due", 7, func() float64 { return free.looked(500) }, func() float64 { return held.looked(500) }, least)
	held.logDeadRows()
}

// holdSnapshot keeps a snapshot of the database open until the function that is returned is called.
func (a *site) holdSnapshot() (release func()) {
	a.t.Helper()
	holder, err := a.users.BeginTx(a.t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		a.t.Fatal(err)
	}
	release = func() { _ = holder.Rollback(context.Background()) }
	if _, err := holder.Exec(a.t.Context(), "SELECT 1"); err != nil {
		release()
		a.t.Fatal(err)
	}
	return release
}

// logDeadRows says how many rows nobody could remove.
func (a *site) logDeadRows() {
	var dead int
	err := a.users.QueryRow(a.t.Context(), "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'job'").Scan(&dead)
	a.t.Logf("%d dead rows were kept, %v", dead, err)
}

// TestSoak_J15_LargeDatabase drains beside five million archived and a million
// live jobs, at four fifths of the rate of an empty database or more. Then half of
// the archive expires: it is removed while somebody reads it, and no finish waits.
func TestSoak_J15_LargeDatabase(t *testing.T) {
	small, large := twoSites(t)
	large.archive(5_000_000)
	large.live(1_000_000)
	large.exec("VACUUM ANALYZE")
	large.exec("CHECKPOINT")
	const jobs = 30_000
	stops := []func(){small.work(), large.work()}
	for _, a := range []*site{small, large} {
		a.drained(jobs)
	}
	ratios(t, "drain beside 5 million archived and 1 million live jobs", 7,
		func() float64 { return small.drained(jobs) }, func() float64 { return large.drained(jobs) }, 0.8)
	for _, stop := range stops {
		stop()
	}

	reader, err := large.users.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(context.Background()) }()
	for _, text := range []string{"DECLARE archive CURSOR FOR SELECT id FROM pawl.job_archive", "FETCH 1 FROM archive"} {
		if _, err := reader.Exec(t.Context(), large.s.pg.SQL(text)); err != nil {
			t.Fatal(err)
		}
	}
	calm := large.finishes(jobs, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var purged atomic.Int64
	over := make(chan error, 1)
	large.s.SetClockOffset(36 * time.Hour) // what was to be kept for a day longer is over
	go func() { over <- large.purge(ctx, &purged) }()
	busy := large.finishes(jobs, &purged)
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
	last := func(list []time.Duration, part float64) time.Duration { return list[int(float64(len(list)-1)*part)] }
	t.Logf("%d archived jobs were removed beside a reader; finishes took %v, 99 of 100 at most %v, the longest %v; before %v, %v, %v", purged.Load(),
		last(busy, 0.5), last(busy, 0.99), last(busy, 1), last(calm, 0.5), last(calm, 0.99), last(calm, 1))
	if longest := last(busy, 1); longest > 2*time.Second {
		t.Errorf("a finish took %v beside retention", longest)
	}
}

// archive writes done jobs as a busy year leaves them, half of which expire within a day.
func (a *site) archive(jobs int) {
	a.t.Helper()
	a.exec(`INSERT INTO pawl.job_archive (namespace, priority, state, id, due, created, finished, expires, run, version, max_attempts, used, queue, kind, args, worker, started, lost, rescues, snoozes, throttles, ties)
		SELECT $1, 5, 5, `+soakID+`, t, t, t, t + interval '366 days' + interval '20 days' * (n % 2), 1, 0, 5, 0, 'q' || n % 5, 'k', '{"n": 12345}', 1, t, 0, 0, 0, 0, 0
		FROM (SELECT n, now() - interval '365 days' + n * interval '1 day' / $2 AS t FROM generate_series(1, $2::int) AS n) AS made`, a.s.pg.Namespace, jobs)
}

// live writes jobs that wait: half of them on another queue, the other half scheduled on that which is drained.
func (a *site) live(jobs int) {
	a.t.Helper()
	a.exec(`INSERT INTO pawl.job (namespace, priority, state, id, due, created, max_attempts, queue, kind, args)
		SELECT $1, 5, 2, `+soakID+`, t + interval '30 days' * (n % 2), t, 5, CASE n % 2 WHEN 0 THEN 'elsewhere' ELSE 'q' END, 'k', '{"n": 12345}'
		FROM (SELECT n, now() - interval '1 hour' + n * interval '1 hour' / $2 AS t FROM generate_series(1, $2::int) AS n) AS made`, a.s.pg.Namespace, jobs)
}

// soakID makes ids as UUIDv7 does: by time, then by chance.
const soakID = `(lpad(to_hex((extract(epoch FROM t) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid`

// finishes drains and returns how long each finish took, in order. With a
// counter, it goes on until something was counted.
func (a *site) finishes(jobs int, counted *atomic.Int64) []time.Duration {
	a.t.Helper()
	var took []time.Duration
	for round := 0; round == 0 || counted != nil && counted.Load() == 0 && round < 10; round++ {
		a.fill(jobs)
		for held := a.hand.claim(200); len(held) > 0; held = a.hand.claim(200) {
			begin := time.Now()
			a.hand.finish(held)
			took = append(took, time.Since(begin))
		}
	}
	slices.Sort(took)
	return took
}

// purge removes as the keeper does until its time is over.
func (a *site) purge(ctx context.Context, purged *atomic.Int64) error {
	breath := time.NewTicker(10 * time.Millisecond)
	defer breath.Stop()
	for {
		n, err := a.s.Purge(ctx, 500)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("purge: %w", err)
		}
		purged.Add(int64(n))
		select {
		case <-breath.C:
		case <-ctx.Done():
			return nil
		}
	}
}
