//go:build fault

package fault

import (
	"testing"

	"github.com/pawlwork/pawl"
)

// TestFault_J25_BulkRetryGoesOnAfterKills kills the processes that retry 5,000 dead jobs. Others go on from where they
// were: each job is retried, and none twice.
func TestFault_J25_BulkRetryGoesOnAfterKills(t *testing.T) {
	for name, on := range map[string]func(*testing.T) *ground{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			const jobs = 5_000
			g := on(t)
			g.dead(jobs)
			f := newFleet(t, g.address)
			chance := seeded(t)
			ctx := pawl.As(t.Context(), "ann", "the deploy is mended")
			op, err := g.Bulk(ctx, pawl.BulkRetry(deadOnes), pawl.Pace(1_000)) // 50 pages
			if err != nil {
				t.Fatal(err)
			}
			workers := []*process{f.start("bulker"), f.start("bulker"), f.start("bulker")}
			killed := 0
			for pages, over := 0, false; killed < 6 && !over; {
				s := f.await()
				switch {
				case s.words == nil:
				case s.words[0] == "failed":
					t.Fatalf("%s: %v", s.by.name, s.words)
				case s.words[0] == "page":
					pages++
				case s.words[0] == "idle":
					over = true // it has ended
				}
				if pages >= 3+chance.IntN(3) {
					i := chance.IntN(len(workers))
					f.kill(workers[i])
					workers[i] = f.start("bulker")
					killed, pages = killed+1, 0
				}
			}
			if killed < 3 {
				t.Errorf("it was killed %d times only", killed)
			}
			for _, w := range workers {
				f.kill(w)
			}
			o, err := g.WaitOperation(ctx, op.ID)
			if err != nil {
				t.Fatal(err)
			}
			g.expectRetriedOnce(o, jobs)
		})
	}
}
