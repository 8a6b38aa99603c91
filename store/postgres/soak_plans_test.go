//go:build soak

package postgres

import "testing"

// TestSoak_P10_PlansOfAnEmptiedTable analyzes the table of jobs when a small backlog
// has gone, as autovacuum may do at any time. What is planned then is used when a
// large one has come: it has to seek all the same.
func TestSoak_P10_PlansOfAnEmptiedTable(t *testing.T) {
	free, emptied := twoSites(t)
	for range 20 { // as many as leave a few pages
		emptied.fill(100)
		emptied.hand.drain(100)
	}
	emptied.exec("ANALYZE pawl.job")
	stops := []func(){free.work(), emptied.work()}
	for _, a := range []*site{free, emptied} {
		a.drained(100)
	}
	emptied.empty()
	emptied.exec("ANALYZE pawl.job")
	const jobs = 20_000
	for _, a := range []*site{free, emptied} {
		a.drained(100)
	}
	ratios(t, "drain with plans of an emptied table", 1,
		func() float64 { return free.drained(jobs) }, func() float64 { return emptied.drained(jobs) }, 0.8)
	for _, stop := range stops {
		stop()
	}
}

// empty waits until the last end of a drain is committed. Nobody tells, so the store is asked.
func (a *site) empty() {
	a.t.Helper()
	for jobs := 1; jobs > 0; {
		if err := a.users.QueryRow(a.t.Context(), a.s.pg.SQL("SELECT count(*) FROM pawl.job")).Scan(&jobs); err != nil {
			a.t.Fatal(err)
		}
	}
}
