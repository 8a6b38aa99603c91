package job_test

import (
	"testing"

	"github.com/pawlwork/pawl/job"
)

func TestOutcomesHaveNames(t *testing.T) {
	for kind, want := range map[job.OutcomeKind]string{
		job.Succeeded: "succeeded", job.Failed: "failed", job.GaveUp: "dead", job.Snoozed: "snoozed",
		job.Released: "released", job.Undecoded: "parked", job.CancelSeen: "cancelled", job.OutOfTime: "deadline",
		job.StoreFailed: "store failed",
		200:             "outcome(200)",
	} {
		if got := kind.String(); got != want {
			t.Errorf("outcome %d is %q, want %q", uint8(kind), got, want)
		}
	}
}
