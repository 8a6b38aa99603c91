//go:build fault

package fault

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
)

// TestFault_J32_ClockSteps sets the clock of a Postgres server by ten minutes, both ways, under work. Each time jobs were
// handed in right before: they run all the same, soon, not when the clock has come as far again. Jobs that run
// throughout are nobody's loss, and a scheduled job keeps its time.
func TestFault_J32_ClockSteps(t *testing.T) {
	const backlog, ten = 600, 10 * time.Minute
	server, step := need.ClockedPostgres(t)
	g := openGround(t, server.URL()+"&pawl_schema=pawl")
	chance := seeded(t)
	off := []time.Duration{ten, 0, -ten, 0}
	if long() {
		for range 30 {
			off = append(off, time.Duration(chance.IntN(121)-60)*time.Minute)
		}
	}
	defer g.watch()()
	f := newFleet(t, g.address)
	workers := []*process{f.start("worker"), f.start("worker")}
	patient := f.start("patient")

	var accepted []int
	number := func() int { accepted = append(accepted, len(accepted)); return len(accepted) - 1 }
	var lasting []job.ID
	for range slots {
		receipt, err := g.Enqueue(t.Context(), Patient{number()})
		if err != nil {
			t.Fatal(err)
		}
		lasting = append(lasting, receipt.ID)
	}
	f.hearOf(slots, "began")
	scheduled, err := g.Enqueue(t.Context(), Effect{number()}, pawl.In(100*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	heard := f.chorus()
	time.Sleep(lostAfter + time.Second) // stimulus: a worker declares others lost only after it has been there for as long as a lease lasts.
	for _, at := range off {
		accepted = append(accepted, g.enqueue(len(accepted), backlog)...)
		step(at)
		g.ended(len(accepted)-len(lasting)-1, awaitLimit)
	}
	if j, err := g.Get(t.Context(), scheduled.ID); err != nil || j.State != job.Waiting {
		t.Errorf("a job that is due in 100 hours is %s, %v", j.State, err)
	}
	step(101 * time.Hour)
	patient.tell("go on")
	g.drained(awaitLimit)
	for _, p := range append(workers, patient) {
		if counted := heard.finish(p); counted.Registered != 1 || counted.LeasesLost != 0 {
			t.Errorf("%s has registered %d times and lost %d leases by steps of the clock", p.name, counted.Registered, counted.LeasesLost)
		}
	}
	for _, id := range lasting {
		if j, err := g.Get(t.Context(), id); err != nil || j.Run != 1 || j.Lost != 0 || j.Used != 0 {
			t.Errorf("a job that ran throughout needed %d runs (%d lost, %d failed), %v", j.Run, j.Lost, j.Used, err)
		}
	}
	// The server measures its timeouts by the clock that was set: a transaction that is open then may be ended.
	for _, meant := range heard.failures {
		if meant != "too-long" {
			t.Errorf("a run failed by a step of the clock: %s", meant)
		}
	}
	if burned, lost := g.blamed(); burned > heard.failed || lost > 0 {
		t.Errorf("%d attempts were burned, while %d transactions were ended, and %d runs lost by steps of the clock", burned, heard.failed, lost)
	}
	g.expectOnce(accepted)
	t.Logf("%d steps of the clock, %d jobs, %d transactions ended by the server", len(off)+1, len(accepted), heard.failed)
}
