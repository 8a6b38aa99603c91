//go:build soak

package fault

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
)

// TestSoak_J30_SettingsAreFollowed has three processes with five queues each. Whatever an operator sets holds in all of them
// within a second: each tells the registry of its new total when it has taken it over. Between changes they ask for nothing
// because of it: fewer than ten transactions a second, of all three together.
func TestSoak_J30_SettingsAreFollowed(t *testing.T) {
	alone := func(t *testing.T) *ground { g, _ := onServer(t); return g }
	for name, ground := range map[string]func(*testing.T) *ground{"sqlite": onSQLite, "postgres": alone} {
		t.Run(name, func(t *testing.T) {
			g := ground(t)
			f := newFleet(t, g.address)
			processes := []*process{f.start("follower"), f.start("follower"), f.start("follower")}
			g.followed(0, 2*awaitLimit) // all are there
			var slowest time.Duration
			for change := range 20 {
				total := 10 + change
				begin := time.Now()
				if err := g.Queue("default").Set(t.Context(), pawl.QueueSettings{Total: total}); err != nil {
					t.Fatal(err)
				}
				g.followed(total, awaitLimit)
				slowest = max(slowest, time.Since(begin))
			}
			t.Logf("the slowest of 20 changes was followed by all after %v", slowest)
			if slowest >= time.Second {
				t.Errorf("a change was followed after %v, want less than a second", slowest)
			}
			if name == "postgres" {
				g.expectIdle(10)
			}
			for _, p := range processes {
				f.finish(p)
			}
		})
	}
}

// followed waits until all three have a total of the default queue; 0: none.
func (g *ground) followed(total int, limit time.Duration) {
	g.t.Helper()
	look := time.NewTicker(5 * time.Millisecond) // nobody tells of the registry, so it is asked
	defer look.Stop()
	for begin := time.Now(); ; <-look.C {
		workers, err := g.Workers(g.t.Context())
		if err != nil {
			g.t.Fatal(err)
		}
		have := 0
		for _, w := range workers {
			i := slices.IndexFunc(w.Worker.Totals, func(t store.Total) bool { return t.Queue == "default" })
			if !w.Lost && (i < 0 && total == 0 || i >= 0 && w.Worker.Totals[i].Total == total) {
				have++
			}
		}
		if have == 3 {
			return
		}
		if time.Since(begin) > limit {
			g.t.Fatalf("%d of 3 processes have a total of %d after %v", have, total, limit)
		}
	}
}

// expectIdle demands that fewer transactions a second are made than that, by all who use the server.
func (g *ground) expectIdle(most float64) {
	g.t.Helper()
	count := func() (n float64) {
		err := g.Tx(context.Background(), func(ctx context.Context, tx *pawl.Tx) error {
			return tx.QueryRow(ctx, "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()").Scan(&n)
		})
		if err != nil {
			g.t.Fatal(err)
		}
		return n
	}
	const watched = 20 * time.Second
	time.Sleep(watched / 2) // stimulus: until the last change is over, and counted: servers count late
	before := count()
	time.Sleep(watched) // stimulus: it is measured that long
	rate := (count() - before) / watched.Seconds()
	g.t.Logf("%.1f transactions a second of 3 idle workers with 5 queues", rate)
	if rate >= most {
		g.t.Errorf("%.1f transactions a second while idle, want less than %.0f", rate, most)
	}
}
