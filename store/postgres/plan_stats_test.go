package postgres

import (
	"slices"
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

// The table of jobs is analyzed when a small backlog has gone, as autovacuum may do at any
// time. What is planned then is used when a large one has come: it seeks all the same.
// (job_cancel has few entries.)
func TestP10_EveryStatementSeeksInAnEmptiedTable(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	for range 3 { // as many as leave a few pages
		c.enqueue(many(100)...)
		c.drain(100)
	}
	conn, err := s.pg.Work.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), s.pg.SQL("ANALYZE pawl.job")); err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		explainGeneric(t, s, conn.Conn(), p.Text).walk(func(n *planNode) {
			if slices.Contains(large, n.Relation) && n.Index != "" && n.Index != "job_cancel" && n.Cond == "" {
				t.Errorf("%s reads all of %s, by %s", p.Name, n.Relation, n.Index)
			}
		})
	}
}
