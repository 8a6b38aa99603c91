package runner

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

// P9: a cancelled context never turns a success, or what a handler says
// deliberately, into something else; only a plain error may be its echo.
func TestP9_TheTruthWins(t *testing.T) {
	causes := []error{nil, job.ErrCancelled, job.ErrStopping, job.ErrLeaseLost, job.ErrTimeout, job.ErrDeadline}
	for _, kind := range []job.OutcomeKind{job.Succeeded, job.GaveUp, job.Snoozed, job.Undecoded} {
		for _, cause := range causes {
			if got := judge(job.Outcome{Kind: kind, Message: "m"}, cause, time.Second); got.Kind != kind || got.Message != "m" {
				t.Errorf("outcome %d with cause %v became %+v", kind, cause, got)
			}
		}
	}
	for i, want := range []job.Outcome{
		{Kind: job.Failed, Message: "m"},
		{Kind: job.CancelSeen, Message: "m"},
		{Kind: job.Released, Message: "m"},
		{Kind: job.Released, Message: "m"},
		{Kind: job.Failed, Message: "pawl: attempt timed out after 1s: m"},
		{Kind: job.OutOfTime, Message: "pawl: job deadline passed: m"},
	} {
		got := judge(job.Outcome{Kind: job.Failed, Message: "m"}, causes[i], time.Second)
		if got.Kind != want.Kind || got.Message != want.Message {
			t.Errorf("an error with cause %v became %+v, want %+v", causes[i], got, want)
		}
	}
}
