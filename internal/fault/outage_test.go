//go:build fault

package fault

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

// lookForLost is how often a process looks for lost workers; see internal/keeper.
const lookForLost = 1500 * time.Millisecond

// TestFault_P8_J32_Outage takes Postgres away for three times as long as a lease lasts, under long jobs. Nobody is lost by
// it: handlers that obey are told in time and run again afterwards, those that do not are done when they say so, and no
// run of a job begins before the one before it has ended. One process comes back later than the other, which must not
// take it for lost.
func TestFault_P8_J32_Outage(t *testing.T) {
	const jobs = 2 * slots // of two processes; the first half obeys
	g, server := onServer(t)
	f := newFleet(t, g.address)
	workers := []*process{f.start("long"), f.start("long")}
	ids := make([]job.ID, jobs)
	for n := range ids {
		receipt, err := g.Enqueue(t.Context(), Long{N: n, Obedient: n < jobs/2})
		if err != nil {
			t.Fatal(err)
		}
		ids[n] = receipt.ID
	}
	f.hearOf(jobs, "began")
	if err := server.Abort(); err != nil {
		t.Fatal(err)
	}
	down := time.Now()
	awake, late := workers[0], workers[1]
	for n, p := range f.hearOf(jobs/2, "ended") {
		if n >= jobs/2 {
			t.Errorf("job %d ended, which does not obey", n)
		}
		if p == workers[1] { // it has a free slot now, and will show that it is back
			awake, late = workers[1], workers[0]
		}
	}
	time.Sleep(time.Until(down.Add(3 * leases().LostAfter))) // stimulus: the server stays away until every lease is long over.
	if err := errors.Join(late.Signal(syscall.SIGSTOP), server.Start()); err != nil {
		t.Fatal(err)
	}
	f.hear(awake, "began")
	time.Sleep(lookForLost) // stimulus: the other one comes back a little later, after the first has looked for workers that are lost.
	if err := late.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, w := range workers {
		w.tell("go on")
	}
	g.drained(awaitLimit)
	for _, w := range workers {
		f.finish(w)
	}
	for n, id := range ids {
		j, err := g.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		runs := int64(1)
		if n < jobs/2 {
			runs = 2
		}
		if j.State != job.Done || j.Run != runs || j.Used != 0 || j.Lost != 0 || len(j.Failures.List()) != 0 {
			t.Errorf("job %d is %s: run %d, %d attempts used, %d lost, failures %v; want done, run %d, nothing counted",
				n, j.State, j.Run, j.Used, j.Lost, j.Failures, runs)
		}
	}
}
