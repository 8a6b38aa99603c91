//go:build soak

package fault

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
	"github.com/pawlwork/pawl/store/postgres"
)

// TestSoak_P8_UsersTransaction lets callers hand in jobs and an engine run them while a user's transaction stays open: one
// that holds a unique key, 1,000 jobs and a row of its own for a minute; one that has finished its job; one that has only
// read. Beside each the work goes on at no less than 0.9 of the rate of a twin, which does the same at the same time in
// another database of the server: whatever else slows the machine down slows both.
func TestSoak_P8_UsersTransaction(t *testing.T) {
	for _, c := range []struct {
		name string
		held time.Duration
		hold func(l *traffic, tx pgx.Tx) error
	}{
		{"that enqueues", time.Minute, func(l *traffic, tx pgx.Tx) error {
			var items []pawl.Item
			for range 1_000 {
				items = append(items, pawl.NewItem(Nothing{}))
			}
			items = append(items, pawl.NewItem(Nothing{}, pawl.Unique(pawl.ByKey("held"))))
			_, err := postgres.Within(l.e, tx).EnqueueMany(l.t.Context(), items...)
			l.owed.Add(int64(len(items)))
			return err
		}},
		{"that has finished its job", 20 * time.Second, func(l *traffic, tx pgx.Tx) error {
			if _, err := l.e.Enqueue(l.t.Context(), Effect{}); err != nil {
				return err
			}
			return postgres.Within(l.e, tx).Finish(<-l.finishing)
		}},
		{"that only reads", 20 * time.Second, func(l *traffic, tx pgx.Tx) error {
			var n int
			return tx.QueryRow(l.t.Context(), "select count(*) from pawl.job").Scan(&n)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const least = 0.9
			g, server := onServer(t)
			l := newTraffic(t, g, server.URL())
			if _, err := l.users.Exec(t.Context(), "create database twin"); err != nil {
				t.Fatal(err)
			}
			elsewhere := strings.Replace(server.URL(), "/postgres?", "/twin?", 1)
			beyond := openGround(t, elsewhere+"&pawl_schema=pawl")
			twin := newTraffic(t, beyond, elsewhere)
			l.rate(twin, 5*time.Second) // to get warm
			before, _ := l.rate(twin, c.held/2)
			tx, err := l.users.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			if err != nil {
				t.Fatal(err)
			}
			err = c.hold(l, tx)
			if err == nil {
				_, err = tx.Exec(t.Context(), "update mine set n = n + 1")
			}
			if err != nil {
				t.Fatal(err)
			}
			beside, jobs := l.rate(twin, c.held)
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			close(l.committed)
			l.stopCallers()
			twin.stopCallers()
			g.drained(awaitLimit)
			beyond.drained(awaitLimit)
			l.stop()
			twin.stop()
			t.Logf("a transaction %s, open for %v: %.0f jobs a second beside it, %.2f of those of the twin (%.2f before)", c.name, c.held, jobs, beside, before)
			if beside < least {
				t.Errorf("%.2f of the rate, want at least %.1f", beside, least)
			}
			if owed := l.owed.Load(); owed != 0 {
				t.Errorf("%d jobs were not run, or run twice", owed)
			}
			g.expectNoDeadlocks()
		})
	}
}

// traffic is callers who hand in jobs as fast as they are run.
type traffic struct {
	t     *testing.T
	e     *pawl.Engine
	users *pgxpool.Pool

	ran, owed atomic.Int64           // jobs run; jobs handed in and not run
	finishing chan *pawl.Job[Effect] // the job that ends in the user's transaction
	committed chan struct{}
	room      chan struct{} // for jobs that are handed in and not run

	stopCallers, stop func()
}

func newTraffic(t *testing.T, g *ground, address string) *traffic {
	t.Helper()
	l := &traffic{t: t, e: g.Engine, finishing: make(chan *pawl.Job[Effect], 1), committed: make(chan struct{}), room: make(chan struct{}, 1_000)}
	var err error
	if l.users, err = pgxpool.New(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.users.Close)
	if _, err := l.users.Exec(t.Context(), "create table mine (n integer); insert into mine values (0)"); err != nil {
		t.Fatal(err)
	}
	pawl.Handle(l.e, func(context.Context, *pawl.Job[Nothing]) error {
		l.ran.Add(1)
		l.owed.Add(-1)
		select {
		case <-l.room:
		default: // one of the user's transaction
		}
		return nil
	})
	pawl.Handle(l.e, func(_ context.Context, j *pawl.Job[Effect]) error {
		l.finishing <- j
		<-l.committed
		return nil
	})
	var callers, engine sync.WaitGroup
	calling, endCalls := context.WithCancel(t.Context())
	running, endRun := context.WithCancel(t.Context())
	l.stopCallers = func() { endCalls(); callers.Wait() }
	l.stop = func() { l.stopCallers(); endRun(); engine.Wait() }
	engine.Go(func() {
		if err := l.e.Run(running); err != nil {
			t.Error(err)
		}
	})
	for caller := range 8 {
		callers.Go(func() { l.call(calling, caller) })
	}
	t.Cleanup(l.stop)
	return l
}

// call hands in jobs, one in four of them unique.
func (l *traffic) call(ctx context.Context, caller int) {
	for n := 0; ; n++ {
		select {
		case l.room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		var opts []pawl.EnqueueOption
		if n%4 == 0 {
			opts = append(opts, pawl.Unique(pawl.ByKey(fmt.Sprint(caller, n))))
		}
		l.owed.Add(1)
		if _, err := l.e.Enqueue(context.WithoutCancel(ctx), Nothing{n}, opts...); err != nil {
			l.t.Error(err)
			return
		}
	}
}

// rate compares how many jobs run in a second with how many of its twin's do, and says how many they are: medians of so
// many seconds.
func (l *traffic) rate(twin *traffic, d time.Duration) (ratio, jobs float64) {
	var ratios, counts []float64
	for end := time.Now().Add(d); time.Now().Before(end); {
		ours, theirs := l.ran.Load(), twin.ran.Load()
		time.Sleep(time.Second) // stimulus: it is measured that long.
		ours, theirs = l.ran.Load()-ours, twin.ran.Load()-theirs
		ratios, counts = append(ratios, float64(ours)/float64(max(theirs, 1))), append(counts, float64(ours))
	}
	slices.Sort(ratios)
	slices.Sort(counts)
	return ratios[len(ratios)/2], counts[len(counts)/2]
}
