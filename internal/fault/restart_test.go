//go:build fault || soak

package fault

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// TestFault_J12_RestartDoesNotWaitForTheLease kills a worker and starts it again at once, as a service manager does. Its
// lease lasts for an hour, and all of the queue's total is its own: only if the new process sees that the old one is dead
// can its jobs, and its portion, come back within the time of this test.
func TestFault_J12_RestartDoesNotWaitForTheLease(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { restartedWorker(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { restartedWorker(t, onPostgres(t)) })
}

// hourLong is config with a lease that no test outlives, and a total that the dead hold.
func hourLong() pawl.Config {
	c := config()
	c.LostAfter = time.Hour
	c.Queues = pawl.Queues{"default": {Workers: slots, Total: slots}}
	return c
}

func restartedWorker(t *testing.T, g *ground) {
	f := newFleet(t, g.address)
	killed := f.start("restarted")
	for n := range slots {
		if _, err := g.Enqueue(t.Context(), Hold{N: n}); err != nil {
			t.Fatal(err)
		}
	}
	f.hearAll(killed, "began 0", "began 1", "began 2", "began 3")
	f.kill(killed)
	begin := time.Now()
	again := f.start("restarted")
	again.tell("go on")
	f.hearAll(again, "again 0", "again 1", "again 2", "again 3")
	t.Logf("all %d jobs of the killed process began again within %v of the restart", slots, time.Since(begin).Round(time.Millisecond))
	g.drained(awaitLimit)
	counted := f.counted(f.finish(again))
	if counted.Registered != 1 || counted.LeasesLost != 0 {
		t.Errorf("the new process counted %+v, want one registration and no lease lost", counted)
	}
	// Whether a run that was killed so soon is known to have begun is not said: that is stored a moment later.
	if burned, _ := g.blamed(); burned != 0 {
		t.Errorf("%d attempts were burned, want none", burned)
	}
	for _, j := range g.jobs() {
		if j.State != job.Done || j.Rescues != 1 {
			t.Errorf("job %s is %s, rescued %d times, want done and once", j.ID, j.State, j.Rescues)
		}
	}
}
