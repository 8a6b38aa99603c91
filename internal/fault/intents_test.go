//go:build fault

package fault

import (
	"context"
	"testing"

	"github.com/pawlwork/pawl"
)

// TestFault_P3_KilledProcessesLeaveEachIntentAppliedOnce kills processes that leave intents and apply them. Whatever
// was committed is applied once in the end, and nothing else.
func TestFault_P3_KilledProcessesLeaveEachIntentAppliedOnce(t *testing.T) {
	for name, on := range map[string]func(*testing.T) *ground{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			g := on(t)
			f := newFleet(t, g.address)
			chance := seeded(t)
			workers := []*process{f.start("intender"), f.start("intender"), f.start("intender")}
			kills := 10
			if long() {
				kills = 200
			}
			for left, killed := 0, 0; killed < kills; {
				s := f.await()
				switch {
				case s.words == nil:
				case s.words[0] == "failed":
					t.Fatalf("%s: %v", s.by.name, s.words)
				default:
					left++
				}
				if left >= 15 {
					i := chance.IntN(len(workers))
					f.kill(workers[i])
					workers[i] = f.start("intender")
					killed, left = killed+1, 0
				}
			}
			for _, w := range workers {
				f.kill(w)
			}
			s := intending(g.Engine)
			for more := true; more; { // what a killed one had locked is free when its session has ended
				if _, err := s.ApplyIntents(t.Context(), 100); err != nil {
					t.Fatal(err)
				}
				list, err := s.WaitingIntents(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				more = len(list) > 0
			}
			g.expectApplied()
		})
	}
}

// expectApplied demands one effect for each intent that was committed, and no other.
func (g *ground) expectApplied() {
	g.t.Helper()
	err := g.Tx(g.t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
		rows, err := tx.Query(ctx, "select n, count(*), sum(run) from effect group by n")
		if err != nil {
			return err
		}
		defer rows.Close()
		all, wrong := 0, 0
		for ; rows.Next(); all++ {
			var n, count, applied int64
			if err := rows.Scan(&n, &count, &applied); err != nil {
				return err
			}
			if count != 2 || applied != 1 {
				wrong++
				g.t.Logf("intent %d: %d rows, applied %d times", n, count, applied)
			}
		}
		g.t.Logf("%d intents", all)
		if wrong > 0 || all == 0 {
			g.t.Errorf("%d of %d intents were not applied once", wrong, all)
		}
		return rows.Err()
	})
	if err != nil {
		g.t.Fatal(err)
	}
}
