//go:build fault || soak

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

// How many schedules there are. They are due every second or every two.
const scheduled = 8

func secondsOf(schedule int) int { return 1 + schedule%2 }

// Tock is the job of a schedule.
type Tock struct{ N int }

// Kind names it.
func (Tock) Kind() string { return "tock" }

// withSchedules is config with schedules that make up for every due time.
func withSchedules() pawl.Config {
	c := config()
	for n := range scheduled {
		c.Schedules = append(c.Schedules, pawl.Schedule{
			Name: fmt.Sprintf("s%d", n), Cron: fmt.Sprintf("*/%d * * * * *", secondsOf(n)), Job: Tock{n}, CatchUp: pawl.CatchUpAll,
		})
	}
	return c
}

// tock runs Tock jobs.
func tock(ctx context.Context, e *pawl.Engine) error {
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Tock]) error {
		say("tock", j.Args.N)
		return nil
	})
	return e.Run(ctx)
}

// TestFault_J16_KilledLeadersFireOncePerDueTime has three processes with the same schedules, and kills the one that
// leads, again and again. Each due time has exactly one job, from the first to the last.
func TestFault_J16_KilledLeadersFireOncePerDueTime(t *testing.T) {
	for name, ground := range map[string]func(*testing.T) *ground{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) { t.Parallel(); killedLeaders(t, ground(t), seeded(t)) })
	}
}

func killedLeaders(t *testing.T, g *ground, chance *rand.Rand) {
	fires, kills := 10, 4
	if long() {
		fires, kills = 200, 40
	}
	f := newFleet(t, g.address)
	// The leader is who registered first of those that live.
	processes := []*process{f.start("scheduler")}
	for f.await().words == nil {
		t.Fatal("the first process has ended")
	}
	processes = append(processes, f.start("scheduler"), f.start("scheduler"))
	every := scheduled * fires / (2 * kills) // jobs between two kills, about
	ran, killed, next := 0, 0, chance.IntN(every)
	for killed < kills || !g.allFired(int64(fires)) {
		s := f.await()
		if s.words == nil {
			if slices.Contains(processes, s.by) {
				t.Fatalf("%s ended by itself: %v", s.by.name, s.by.Wait())
			}
			continue
		}
		if ran++; ran < next || killed == kills {
			continue
		}
		time.Sleep(time.Duration(chance.Int64N(int64(time.Second)))) // stimulus: at any moment between two due times
		f.kill(processes[0])
		killed, next = killed+1, ran+1+chance.IntN(every)
		processes = append(processes[1:], f.start("scheduler"))
	}
	for _, p := range processes {
		f.finish(p)
	}
	g.expectContiguous(fires)
	t.Logf("%d jobs ran, %d leaders were killed", ran, killed)
}

// allFired reports whether every schedule has fired so often.
func (g *ground) allFired(fires int64) bool {
	g.t.Helper()
	list, err := g.Schedules(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	return len(list) == scheduled && !slices.ContainsFunc(list, func(s pawl.ScheduleStatus) bool { return s.Fires < fires })
}

// expectContiguous demands that each schedule has one job for each due time from its first to its last.
func (g *ground) expectContiguous(fires int) {
	g.t.Helper()
	due := map[string][]time.Time{}
	for _, j := range g.jobs() {
		h := j.Headers()
		at, err := time.Parse(time.RFC3339, h["pawl-due"])
		if err != nil {
			g.t.Fatal(err)
		}
		due[h["pawl-schedule"]] = append(due[h["pawl-schedule"]], at)
	}
	for n := range scheduled {
		list := due[fmt.Sprintf("s%d", n)]
		slices.SortFunc(list, time.Time.Compare)
		if len(list) < fires {
			g.t.Errorf("s%d has %d jobs, want %d", n, len(list), fires)
		}
		for i := 1; i < len(list); i++ {
			if apart := list[i].Sub(list[i-1]); apart != time.Duration(secondsOf(n))*time.Second {
				g.t.Errorf("s%d is due every %d s, and has jobs for %v and %v", n, secondsOf(n), list[i-1], list[i])
			}
		}
	}
}
