package sqlite

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/store"
)

func TestJ27_ThePageListsTheRules(t *testing.T) {
	page, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range (*Store)(nil).Rules() {
		if line := fmt.Sprintf("| %s | %s |", r.Name, r.Says); !strings.Contains(string(page), line) {
			t.Errorf("docs/check.md has no line that begins %q", line)
		}
	}
}

// A run whose worker was just lost is not a fault: rescue has the grace.
func TestP6_TheGraceOfALostWorker(t *testing.T) {
	s := open(t, newFile(t))
	lost, by := s.mustRegister(t), s.mustRegister(t)
	s.mustEnqueue(t, drafts(2)...)
	s.mustClaim(t, claimOf(lost, 1, 2))
	s.SetClockOffset(2 * time.Minute)
	beaten, err := s.Beat(t.Context(), store.Beat{Worker: by})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.MarkLost(t.Context(), store.MarkLostRequest{By: by, Beat: beaten.Now, Steady: time.Hour}); n.Workers != 1 || err != nil {
		t.Fatal(n, err)
	}
	faults := func() int {
		r, err := s.Check(t.Context(), store.Check{Grace: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return len(r.Faults)
	}
	if n := faults(); n != 0 {
		t.Errorf("%d faults within the grace, want none", n)
	}
	s.SetClockOffset(4 * time.Minute)
	if n := faults(); n != 2 {
		t.Errorf("%d faults after the grace, want both runs", n)
	}
	if _, err := s.Rescue(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	if n := faults(); n != 0 {
		t.Errorf("%d faults after the rescue, want none", n)
	}
}
