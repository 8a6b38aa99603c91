//go:build fault

package fault

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgserver"
)

// TestFault_P1_P2_P3_Promotion kills a primary and promotes its standby under work.
//
// Without synchronous replication the standby misses the last commits. What it has runs; what it misses is gone with
// everything that was written in the same commits, so that a job and its effect are both there or both not. Runs that
// only the dead primary knew are refused when they end, and their jobs run again. A worker that only it knew registers
// anew. With synchronous replication nothing is missing that was accepted.
func TestFault_P1_P2_P3_Promotion(t *testing.T) {
	t.Run("asynchronous", func(t *testing.T) { promotion(t, false) })
	t.Run("synchronous", func(t *testing.T) { promotion(t, true) })
}

func promotion(t *testing.T, synchronous bool) {
	chance := seeded(t)
	some := func() int { return 200 + chance.IntN(200) }
	if long() {
		some = func() int { return 4_000 + chance.IntN(4_000) }
	}
	var settings []string
	if synchronous {
		// From the start: nobody tells when a server has heard of it later.
		settings = append(settings, "synchronous_standby_names=*")
	}
	primary := need.PostgresServer(t, settings...)
	clients, replication := newWay(t, primary.Port()), newWay(t, primary.Port())
	standby := need.PostgresStandby(t, replication.port()) // before the ground, which is inspected at the end
	g := openGround(t, fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable&pawl_schema=pawl", clients.port()))
	follow(t, primary, synchronous)
	f := newFleet(t, g.address)
	heard := f.chorus()
	workers := []*process{f.start("worker"), f.start("worker")}

	l := startLoad(t, g.Engine)
	l.await(some())
	for _, w := range workers { // the standby knows them
		heard.await(w, "began")
	}
	if !synchronous {
		// From here on the standby misses everything, also one worker.
		l.enter(doomed)
		caughtUp(t, primary)
		replication.lead(0)
		newcomer := f.start("worker")
		heard.await(newcomer, "began")
		workers = append(workers, newcomer)
		l.await(some())
	}
	err := primary.Kill()
	clients.lead(0)
	replication.lead(0)
	if err := errors.Join(err, standby.Promote()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * beat) // stimulus: a failover takes a while, in which heartbeats fail.
	clients.lead(standby.Port())
	l.enter(saved)
	l.await(some())
	l.stop()
	g.drained(awaitLimit)

	for i, w := range workers {
		counted, want := heard.finish(w), uint64(1)
		if i == 2 {
			want = 2
		}
		if counted.Registered != want {
			t.Errorf("%s has registered %d times, want %d", w.name, counted.Registered, want)
		}
	}
	for _, meant := range heard.failures {
		if !slices.Contains([]string{"unknown", "unavailable", "lost"}, meant) {
			t.Errorf("a run failed by the failover: %s", meant)
		}
	}
	l.judge(g, synchronous)
}

// follow waits until the primary has its standby, for which each commit waits if that was asked for.
func follow(t *testing.T, primary *pgserver.Server, synchronous bool) {
	t.Helper()
	state := "async"
	if synchronous {
		state = "sync"
	}
	until(t, "the standby follows", func() bool {
		return ask[bool](t, primary, fmt.Sprintf("select exists (select from pg_stat_replication where state = 'streaming' and sync_state = '%s')", state))
	})
}

// caughtUp waits until the standby has applied what is committed now.
func caughtUp(t *testing.T, primary *pgserver.Server) {
	t.Helper()
	lsn := ask[string](t, primary, "select pg_current_wal_lsn()::text")
	until(t, "the standby has caught up", func() bool {
		return ask[bool](t, primary, fmt.Sprintf("select exists (select from pg_stat_replication where replay_lsn >= '%s')", lsn))
	})
}

// until asks again and again: a server tells nobody about its standby.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for late := time.After(awaitLimit); !holds(); {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("not after %v: %s", awaitLimit, what)
		}
	}
}

// ask asks a server directly.
func ask[T any](t *testing.T, server *pgserver.Server, question string) (answer T) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if err := c.QueryRow(t.Context(), question).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}
