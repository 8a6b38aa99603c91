package postgres

import (
	"strconv"
	"testing"
)

// Nor does it matter what the planner was told when: statistics of a moment in
// which the table held nothing but dead rows make every index look alike.
func TestP10_EveryStatementHasItsIndexAfterAnalyze(t *testing.T) {
	s := openInternal(t)
	holdSnapshot(t, s)
	c := hire(t, s)
	for _, live := range []int{0, 500} {
		c.enqueue(many(4000)...)
		c.drain(500)
		c.enqueue(many(live)...)
		if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL("ANALYZE pawl.job")); err != nil {
			t.Fatal(err)
		}
		t.Run(strconv.Itoa(live)+" live jobs", func(t *testing.T) { checkPlans(t, s) })
		if got := c.drain(500); got != live {
			t.Fatalf("drained %d, want %d", got, live)
		}
	}
}
