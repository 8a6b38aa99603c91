package claims

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store/internal/turns"
)

// A pass that has locked a gate remembers from where to count there; one that has not, or
// whose answer came late, does not.
func TestJ19_WhatWasCountedIsRemembered(t *testing.T) {
	noon := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	here := time.Now()
	pass := func(took time.Duration) *gatePass {
		p := &gatePass{now: noon, visits: []gateVisit{
			{locked: true, running: 2, first: noon.Add(-time.Minute)}, {locked: true}, {running: 1, first: noon.Add(-time.Hour)},
		}}
		p.countedAt(here, took)
		return p
	}
	p := pass(time.Millisecond)
	for i, want := range []time.Time{noon.Add(-time.Minute), noon} {
		from, clock := p.visits[i].Data.runs.from(here.Add(10 * time.Second))
		if !from.Time.Equal(want.Add(-2*clockSlack)) || !clock.Time.Equal(noon.Add(10*time.Second-clockSlack)) {
			t.Errorf("gate %d is counted from %v if the clock shows %v", i, from.Time, clock.Time)
		}
	}
	for name, v := range map[string]gateVisit{"not locked": p.visits[2], "late": pass(time.Second).visits[0]} {
		if from, _ := v.Data.runs.from(here); from.InfinityModifier != pgtype.NegativeInfinity {
			t.Errorf("%s: it is counted from %v", name, from.Time)
		}
	}
	if v := (gateVisit{Visit: turns.Visit[gateFront]{}}); v.Data.runs != (runsSince{}) {
		t.Error("a new gate has a place")
	}
}
