//go:build fault

package fault

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need/pgserver"
)

// TestFault_P2_P3_KilledWorkers kills workers while they work. Each job inserts a row and finishes in one transaction,
// so a run that is killed has done both or neither: every job is done in the end, and has left exactly one row. A soak
// also ends the Postgres server at once, without a checkpoint, three times.
func TestFault_P2_P3_KilledWorkers(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { killedWorkers(t, onSQLite(t), nil) })
	t.Run("postgres", func(t *testing.T) {
		if long() {
			g, server := onServer(t)
			killedWorkers(t, g, server)
		} else {
			killedWorkers(t, onPostgres(t), nil)
		}
	})
}

// massacre is one test: processes that work, and when they are killed.
type massacre struct {
	*fleet
	g       *ground
	chance  *rand.Rand
	workers []*process
	server  *pgserver.Server // to be restarted; nil means not

	kills, restarts     []int // after how many jobs, in order
	ran, runs           int   // jobs that said so
	killed, interrupted int   // processes, runs that met a restart
}

func killedWorkers(t *testing.T, g *ground, server *pgserver.Server) {
	m := &massacre{fleet: newFleet(t, g.address), g: g, chance: seeded(t), server: server}
	jobs, kills := 2_000, 10
	if long() {
		jobs, kills = 20_000, 0 // by the clock instead
	}
	m.kills = m.within(kills, jobs)
	if server != nil {
		m.restarts = m.within(3, jobs)
	}
	for range 3 {
		m.workers = append(m.workers, m.start("worker"))
	}
	accepted := g.enqueue(0, jobs)
	var clock <-chan time.Time
	if long() {
		// No worker lives long enough to know that others are lost, so somebody else must.
		defer g.watch()()
		// stimulus: a kill every 200 ms, until everything is done.
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		clock = ticker.C
	}
	m.untilDone(clock)
	for _, w := range m.workers {
		m.finish(w)
	}
	g.expectOnce(accepted)
	burned, lost := g.blamed()
	if burned > m.interrupted {
		t.Errorf("%d attempts were burned, and %d runs met a restart of the server", burned, m.interrupted)
	}
	t.Logf("%d jobs, %d kills, %d runs begun, %d of them lost, %d interrupted by the server", jobs, m.killed, m.runs, lost, m.interrupted)
}

// untilDone acts on what the workers say until every job has ended. What a killed process committed it could no longer
// say, so the store is asked.
func (m *massacre) untilDone(clock <-chan time.Time) {
	m.t.Helper()
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for late := time.After(10 * time.Minute); ; {
		select {
		case s := <-m.said:
			m.note(s)
			m.take(s)
		case <-clock:
			m.killOne()
		case <-look.C:
			// What was said may still be on its way, and kills depend on it.
			if len(m.kills)+len(m.restarts) == 0 && m.g.live() == 0 {
				return
			}
		case <-late:
			m.t.Fatalf("%d jobs have not ended; %d kills and %d restarts did not happen: too few jobs said that they ran", m.g.live(), len(m.kills), len(m.restarts))
		}
	}
}

// take acts on one line.
func (m *massacre) take(s saying) {
	m.t.Helper()
	if s.words == nil {
		if slices.Contains(m.workers, s.by) {
			m.t.Fatalf("%s ended by itself: %v", s.by.name, s.by.Wait())
		}
		return
	}
	switch s.words[0] {
	case "began":
		m.runs++
	case "ran":
		m.ran++
	case "failed":
		if m.server == nil || !slices.Contains([]string{"unavailable", "unknown", "lost"}, s.words[2]) {
			m.t.Errorf("%s: %v", s.by.name, s.words)
		}
		m.interrupted++
	}
	for len(m.kills) > 0 && m.ran >= m.kills[0] {
		m.kills = m.kills[1:]
		m.killOne()
	}
	for len(m.restarts) > 0 && m.ran >= m.restarts[0] {
		m.restarts = m.restarts[1:]
		if err := errors.Join(m.server.Abort(), m.server.Start()); err != nil {
			m.t.Fatal(err)
		}
	}
}

// killOne kills a worker and starts another in its place.
func (m *massacre) killOne() {
	m.t.Helper()
	i := m.chance.IntN(len(m.workers))
	m.kill(m.workers[i])
	m.workers[i] = m.start("worker")
	m.killed++
}

// within chooses after how many jobs each of some events comes, in order.
func (m *massacre) within(events, jobs int) []int {
	when := make([]int, events)
	for i := range when {
		when[i] = 1 + m.chance.IntN(jobs*8/10)
	}
	slices.Sort(when)
	return when
}
