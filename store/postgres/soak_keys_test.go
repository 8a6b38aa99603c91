//go:build soak

package postgres

import (
	"fmt"
	"testing"

	"github.com/pawlwork/pawl"
)

// fillKeys hands in jobs of 1,000 keys, which take turns.
func (a *site) fillKeys(jobs int) {
	a.t.Helper()
	const keys = 1_000
	for n := 0; n < jobs; n += keys {
		items := make([]pawl.Item, min(keys, jobs-n))
		for i := range items {
			items[i] = pawl.NewItem(noop{}, pawl.Queue("q"), pawl.Key(fmt.Sprint("key-", i)))
		}
		if _, err := a.e.EnqueueMany(a.t.Context(), items...); err != nil {
			a.t.Fatal(err)
		}
	}
}

// TestSoak_J19_HeldSnapshot keeps a snapshot open over everything that is done to one
// of two databases, whose jobs have 1,000 keys with two slots each. What piles up
// behind the gates costs at most a fifth.
func TestSoak_J19_HeldSnapshot(t *testing.T) {
	free, held := twoSites(t, pawl.Limit{Name: "keys", Queue: "q", PerKey: true, Concurrent: 2})
	defer held.holdSnapshot()()
	const jobs, rounds, least = 10_000, 7, 0.8
	stops := []func(){free.work(), held.work()}
	for _, a := range []*site{free, held} { // the first rows are those that stay in the way
		a.worksOff(2*jobs, a.fillKeys)
	}
	ratios(t, "drain of 1,000 keys", rounds,
		func() float64 { return free.worksOff(jobs, free.fillKeys) }, func() float64 { return held.worksOff(jobs, held.fillKeys) }, least)
	for _, stop := range stops {
		stop()
	}
	held.logDeadRows()
}
