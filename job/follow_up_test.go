package job_test

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

// The id of a follow-up is the same for the same run and number, another for
// every other, and one of version 7 with the time of the run.
func TestJ33_IdsOfFollowUpsAreDerived(t *testing.T) {
	of, other := job.NewID(), job.NewID()
	at := time.UnixMilli(1_800_000_000_123)
	id := job.FollowUpID(of, 3, at, 0)
	if again := job.FollowUpID(of, 3, at, 0); again != id {
		t.Errorf("%s, then %s", id, again)
	}
	for what, differs := range map[string]job.ID{
		"number": job.FollowUpID(of, 3, at, 1), "run": job.FollowUpID(of, 4, at, 0), "job": job.FollowUpID(other, 3, at, 0),
	} {
		if differs == id {
			t.Errorf("another %s has the same id", what)
		}
	}
	if id.Version() != 7 || id.Variant() != job.NewID().Variant() {
		t.Errorf("version %d, variant %s", id.Version(), id.Variant())
	}
	if sec, nsec := id.Time().UnixTime(); time.Unix(sec, nsec).UnixMilli() != at.UnixMilli() {
		t.Errorf("its time is %v, want %v", time.Unix(sec, nsec), at)
	}
}
