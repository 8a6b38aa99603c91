package claims

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Endlessly many jobs for others keep what comes behind them back until the bound of a
// look, and no longer; what is left is not passed.
func TestJ6_ALookGivesLowerPrioritiesAtItsBound(t *testing.T) {
	noon := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	l := &claimQueue{queue: &store.QueueClaim{Limit: 1, Start: 1}, room: 1}
	w := newLookWalk(l)
	own := candidate{position: position{noon.Add(-time.Hour), job.NewID()}, priority: 9, takes: true}
	found, asked := []candidate{own}, 100
	for n := 1; ; n++ {
		for i := range asked {
			found = append(found, candidate{position: position{noon.Add(time.Duration(n*asked+i) * time.Second), job.NewID()}, priority: 1})
		}
		last := found[len(found)-1].position
		bounded := w.read(w.next(), found, asked)
		if bounded != (n*asked >= LookBound(1)) {
			t.Fatalf("after %d of one priority: at its bound %t", n*asked, bounded)
		}
		if bounded {
			break
		}
		if chosen := w.choose(); len(chosen) > 0 {
			t.Fatalf("after %d of a higher priority %v is taken", n*asked, chosen)
		}
		if to := w.frontier(); to[1] != last || to[9] != l.view.At[9] {
			t.Fatalf("it passes to %v and %v", to[1], to[9])
		}
		if next := w.next(); len(next) != 1 || next[0] != 1 {
			t.Fatalf("it reads priorities %v", next)
		}
		found = nil
	}
	if chosen := w.choose(); len(chosen) != 1 || chosen[0].ID != own.ID {
		t.Errorf("at the bound it takes %v", chosen)
	}
	if to := w.frontier(); to[9] != own.position {
		t.Errorf("it passes what it took to %v", to[9])
	}
}
