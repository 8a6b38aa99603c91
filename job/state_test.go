package job_test

import (
	"testing"

	"github.com/pawlwork/pawl/job"
)

// The table written again by hand: a change of a move must be made twice.
func TestMovesAreExactlyTheTable(t *testing.T) {
	allowed := map[string]bool{
		"blocked>waiting": true, "blocked>cancelled": true, "blocked>skipped": true,
		"waiting>waiting": true, "waiting>running": true, "waiting>dead": true, "waiting>cancelled": true,
		"running>waiting": true, "running>suspended": true, "running>done": true, "running>dead": true, "running>cancelled": true,
		"suspended>waiting": true, "suspended>dead": true, "suspended>cancelled": true,
		"done>waiting": true, "dead>waiting": true, "cancelled>waiting": true,
	}
	for _, from := range job.States() {
		for _, to := range job.States() {
			name := from.String() + ">" + to.String()
			if got := job.CanMove(from, to); got != allowed[name] {
				t.Errorf("%s: allowed %v, want %v", name, got, allowed[name])
			}
		}
	}
	if job.CanMove(0, job.Waiting) || job.CanMove(job.Waiting, 99) {
		t.Error("a state outside the table may move")
	}
}

func TestStateNamesRoundTrip(t *testing.T) {
	for _, s := range job.States() {
		text, err := s.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back job.State
		if err := back.UnmarshalText(text); err != nil || back != s {
			t.Errorf("%s came back as %s, %v", s, back, err)
		}
		if s.Final() != (s == job.Done || s == job.Dead || s == job.Cancelled || s == job.Skipped) {
			t.Errorf("%s: final %v", s, s.Final())
		}
	}
	if _, err := job.ParseState("asleep"); err == nil {
		t.Error("a state that does not exist was read")
	}
	if _, err := job.State(99).MarshalText(); err == nil {
		t.Error("a state that does not exist was written")
	}
}
