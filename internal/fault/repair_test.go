//go:build fault

package fault

import (
	"context"
	"testing"

	"github.com/pawlwork/pawl"
)

// TestFault_J27_RepairBesideKills repairs all the time while workers work and are killed. Nothing of that is a fault, so
// nothing is found and nothing is changed: every job is done in the end, once.
func TestFault_J27_RepairBesideKills(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { repairBesideKills(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { repairBesideKills(t, onPostgres(t)) })
}

func repairBesideKills(t *testing.T, g *ground) {
	m := &massacre{fleet: newFleet(t, g.address), g: g, chance: seeded(t)}
	jobs, kills := 800, 5
	if long() {
		jobs, kills = 8_000, 50
	}
	m.kills = m.within(kills, jobs)
	for range 3 {
		m.workers = append(m.workers, m.start("worker"))
	}
	ctx, stop := context.WithCancel(t.Context())
	looks, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			report, err := g.Check(ctx, pawl.CheckOptions{Repair: true, Totals: looks%2 == 0, Step: 200})
			if err != nil && ctx.Err() == nil {
				t.Errorf("look %d: %v", looks, err)
				return
			}
			if report.Found > 0 || len(report.Repairs) > 0 {
				t.Errorf("look %d: %s", looks, report)
			}
			looks++
		}
	}()
	accepted := g.enqueue(0, jobs)
	m.untilDone(nil)
	stop()
	<-ended
	for _, w := range m.workers {
		m.finish(w)
	}
	g.expectOnce(accepted)
	audit, err := g.Audit(t.Context(), pawl.AuditFilter{Action: "repair"}, pawl.AuditPage{})
	if err != nil || len(audit.Entries) > 0 {
		t.Errorf("audit: %+v, %v", audit.Entries, err)
	}
	t.Logf("%d jobs, %d kills, %d looks", jobs, m.killed, looks)
}
