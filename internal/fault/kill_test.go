//go:build fault

package fault

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestFault_P2_P3_KilledWorkers kills workers while they work. Each job inserts a row and finishes in one transaction,
// so a run that is killed has done both or neither: every job is done in the end, and has left exactly one row.
func TestFault_P2_P3_KilledWorkers(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { killedWorkers(t, onSQLite(t)) })
}

func killedWorkers(t *testing.T, g *ground) {
	jobs, kills := 2_000, 10
	if long() {
		jobs, kills = 20_000, 0 // by the clock instead
	}
	chance := seeded(t)
	f := newFleet(t, g.address)
	var workers []*process
	for range 3 {
		workers = append(workers, f.start("worker"))
	}
	accepted := g.enqueue(jobs)
	killed := 0
	kill := func() {
		i := chance.IntN(len(workers))
		f.kill(workers[i])
		workers[i] = f.start("worker")
		killed++
	}
	var clock <-chan time.Time
	if long() {
		// No worker lives long enough to know that others are lost, so somebody else must.
		defer g.watch()()
		// stimulus: a kill every 200 ms, until everything is done.
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		clock = ticker.C
	}
	// What a killed process committed it could no longer say, so the store is asked whether all is done.
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	late := time.After(10 * time.Minute)
	ran, runs := 0, 0
	for when, done := killsWithin(chance, kills, jobs), false; !done; {
		select {
		case s := <-f.said:
			f.note(s)
			switch {
			case s.words == nil:
				if slices.Contains(workers, s.by) {
					t.Fatalf("%s ended by itself: %v", s.by.name, s.by.Wait())
				}
			case s.words[0] == "began":
				runs++
			case s.words[0] == "ran":
				ran++
				for len(when) > 0 && ran >= when[0] {
					when = when[1:]
					kill()
				}
			default:
				t.Errorf("%s: %v", s.by.name, s.words)
			}
		case <-clock:
			kill()
		case <-look.C:
			done = g.live() == 0
		case <-late:
			t.Fatalf("%d jobs have not ended", g.live())
		}
	}
	for _, w := range workers {
		f.finish(w)
	}
	if killed < kills {
		t.Errorf("only %d kills of %d: too few jobs said that they ran", killed, kills)
	}
	g.expectOnce(accepted)
	lost := g.expectUnblamed()
	t.Logf("%d jobs, %d kills, %d runs begun, %d of them lost", jobs, killed, runs, lost)
}

// killsWithin chooses after how many jobs each kill comes, in order.
func killsWithin(chance *rand.Rand, kills, jobs int) []int {
	when := make([]int, kills)
	for i := range when {
		when[i] = 1 + chance.IntN(jobs*8/10)
	}
	slices.Sort(when)
	return when
}
