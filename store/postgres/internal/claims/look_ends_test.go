package claims

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/turns"
)

// A gate behind which only jobs for others were read of the first priority gives none of
// the next one, and is looked at again. When no look reads more it does.
func TestJ6_JobsForOthersAreLookedPastUpToABound(t *testing.T) {
	noon := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	rules := job.NewGateRules(map[string]job.LimitSettings{"all": {Queue: "q", Concurrent: 1}})
	for asked, want := range map[int]struct{ took, further bool }{1: {further: true}, widest / 2: {further: true}, widest: {took: true}} {
		v := gateVisit{given: 1, asked: asked, known: true, locked: true}
		v.Of = &turns.Gate[gateFront]{Number: rules.Gate("q", "k", "")}
		v.bound, _ = rules.Bound("q", "k", "")
		for range asked {
			other := candidate{position: position{noon.Add(-time.Second), job.NewID()}, priority: 1}
			v.found = append(v.found, gateJob{candidate: other, kind: "other"})
		}
		own := gateJob{candidate: candidate{position: position{noon.Add(-time.Hour), job.NewID()}, priority: 9, takes: true}, kind: "k"}
		v.found = append(v.found, own)
		p := &gatePass{
			k: &claiming{c: &store.Claim{Gates: rules}}, g: &gatedQueue{queue: &store.QueueClaim{Queue: "q"}},
			now: noon, visits: []gateVisit{v}, start: 1, room: 1,
		}
		p.choose()
		took := slices.ContainsFunc(p.visits[0].chosen, func(c gateJob) bool { return c.ID == own.ID })
		if took != want.took || p.further != want.further {
			t.Errorf("%d for others: the next priority is taken %t, and it looks further %t", asked, took, p.further)
		}
		if v.Data.at[9] != p.visits[0].Data.at[9] && !took {
			t.Errorf("%d for others: what was left is passed", asked)
		}
	}
}
