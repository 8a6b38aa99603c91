package postgres

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Nor does it matter what the planner was told when: statistics of a moment in
// which the table held nothing but dead rows make every index look alike.
func TestP10_EveryStatementHasItsIndexAfterAnalyze(t *testing.T) {
	s := openInternal(t)
	holder, err := newPool(t, s.pg.Users.Config().ConnString()).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	if _, err := holder.Exec(t.Context(), s.pg.SQL("SELECT count(*) FROM pawl.job")); err != nil {
		t.Fatal(err)
	}
	c := hire(t, s)
	for _, live := range []int{0, 500} {
		c.enqueue(many(4000)...)
		c.drain(500)
		c.enqueue(many(live)...)
		if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL("ANALYZE pawl.job")); err != nil {
			t.Fatal(err)
		}
		conn, err := s.pg.Work.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range statements {
			plan := explainGeneric(t, s, conn.Conn(), want.text)
			var used []string
			plan.walk(func(n *planNode) {
				if n.Index != "" {
					used = append(used, n.Index)
				}
				if slices.Contains(large, n.Relation) && n.Index != "" && wholeNamespace.MatchString(n.Cond) {
					t.Errorf("%d live jobs: %s reads a whole namespace of %s by %s: %s", live, name, n.Relation, n.Index, n.Cond)
				}
			})
			for _, index := range want.indexes {
				if !slices.Contains(used, index) {
					t.Errorf("%d live jobs: the plan of %s uses %v, not %s", live, name, used, index)
				}
			}
		}
		conn.Release()
		if got := c.drain(500); got != live {
			t.Fatalf("drained %d, want %d", got, live)
		}
	}
}
