package postgres

import (
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
)

// Jobs behind a closed gate are no rows that a claim steps over, however many and
// however old they are, also while a snapshot keeps dead entries.
func TestP10_ClosedGatesAreNotVisited(t *testing.T) {
	s := openInternal(t)
	holdSnapshot(t, s)
	c := hire(t, s)
	behind := make([]job.Draft, 3000)
	for i := range behind {
		behind[i] = someDraft(func(d *job.Draft) { d.Gate, d.Priority = int64(i%7+1), 1 })
	}
	c.enqueue(behind...)
	c.enqueue(many(10)...)
	if n := c.visits(s.claims.Frontiers.View(claims.Lane("q", 0, claims.NewOffer(knowsK).Print))); n > 20 {
		t.Errorf("a claim of 10 jobs visits %d entries beside 3000 jobs behind closed gates", n)
	}
	if got := len(c.claim(100)); got != 10 {
		t.Errorf("%d jobs were claimed, want the 10 in front of the gates", got)
	}
}
