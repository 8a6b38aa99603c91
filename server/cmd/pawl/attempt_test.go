package main

import (
	"testing"

	"github.com/pawlwork/pawl/server/httpapi"
)

// Attempts are counted from 1, as the pages of Mission Control count them; JSON has what the store has.
func TestU8_AttemptsAreCountedFromOne(t *testing.T) {
	for want, j := range map[string]httpapi.Job{
		"1/5": {State: "waiting", Attempt: 1, Used: 0, MaxAttempts: 5},
		"2/5": {State: "running", Attempt: 2, Used: 1, MaxAttempts: 5},
		"5/5": {State: "dead", Attempt: 6, Used: 5, MaxAttempts: 5},
		"3/5": {State: "done", Attempt: 3, Used: 2, MaxAttempts: 5},
		"1/2": {State: "cancelled", Attempt: 1, Used: 0, MaxAttempts: 2},
	} {
		if got := attemptText(&j, "/"); got != want {
			t.Errorf("%+v: %s, want %s", j, got, want)
		}
	}
}
