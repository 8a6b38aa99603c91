//go:build fault

package fault

import (
	"slices"
	"testing"

	"github.com/pawlwork/pawl/job"
)

// TestFault_P1_KilledSender kills processes that hand in jobs. What they were told is accepted is there.
func TestFault_P1_KilledSender(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { killedSender(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { killedSender(t, onPostgres(t)) })
}

func killedSender(t *testing.T, g *ground) {
	chance := seeded(t)
	rounds := 5
	if long() {
		rounds = 50
	}
	f := newFleet(t, g.address)
	var accepted []job.ID
	take := func(s saying) {
		if s.words[0] != "accepted" {
			t.Fatalf("%s: %v", s.by.name, s.words)
		}
		id, err := job.ParseID(s.words[1])
		if err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, id)
	}
	for range rounds {
		sender := f.start("sender")
		for range 1 + chance.IntN(500) {
			take(f.await())
		}
		f.kill(sender)
		for s := f.await(); s.words != nil; s = f.await() {
			take(s)
		}
	}
	found := map[job.ID]bool{}
	for _, j := range g.jobs() {
		found[j.ID] = true
	}
	if i := slices.IndexFunc(accepted, func(id job.ID) bool { return !found[id] }); i >= 0 {
		t.Errorf("job %s was accepted (number %d of %d) and is not there", accepted[i], i, len(accepted))
	}
	t.Logf("%d kills, %d jobs accepted, %d found", rounds, len(accepted), len(found))
}
