//go:build soak

package fault

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
)

// TestSoak_P10_ATrickleInAFleetOfAHundred counts the transaction numbers that a hundred engines in four processes take, each
// with two connections: while they have nothing to do, and while they hand in twenty jobs a second.
func TestSoak_P10_ATrickleInAFleetOfAHundred(t *testing.T) {
	const processes = 4
	server := need.PostgresServer(t, "max_connections=1000", "autovacuum=off")
	g := openGround(t, server.URL()+"&pawl_schema=pawl")
	f := newFleet(t, g.address+"&pawl_connections=2")
	f.env = []string{"PAWL_FAULT=long"} // leases as they are by default
	var all []*process
	for range processes {
		p := f.start("crowd")
		f.hear(p, "ready")
		all = append(all, p)
	}
	db, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	numbers := func() (n int64) {
		t.Helper()
		if err := db.QueryRow(t.Context(), "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	time.Sleep(15 * time.Second) // stimulus: they come to rest
	before, began := numbers(), time.Now()
	time.Sleep(crowdLength) // stimulus: nothing happens
	idle := float64(numbers()-before) / time.Since(began).Seconds()
	for _, p := range all {
		p.tell("go on")
	}
	before, began = numbers(), time.Now()
	const jobs = processes * crowdRate * int(crowdLength/time.Second)
	for left := processes; left > 0; {
		s := f.await()
		if s.words == nil {
			t.Fatalf("%s ended: %v", s.by.name, s.by.Wait())
		}
		if s.words[0] == "trickled" {
			left--
		}
	}
	took := numbers() - before
	seconds := time.Since(began).Seconds()
	each := float64(took) / float64(jobs)
	t.Logf("%d engines in %d processes: %.1f transaction numbers a second while idle; %.1f jobs a second: %.4f numbers a job, %.2f beyond those of the idle fleet",
		processes*crowd, processes, idle, float64(jobs)/seconds, each, each-idle*seconds/float64(jobs))
	if each > 3 {
		t.Errorf("%.4f transaction numbers a job, want 3 at most", each)
	}
	for _, p := range all {
		f.finish(p)
	}
	if n, err := g.Count(t.Context(), pawl.Filter{States: []pawl.State{pawl.StateDone}}, 0); err != nil || n.Jobs != jobs {
		t.Errorf("%+v jobs were done, %v, want %d", n, err, jobs)
	}
}
