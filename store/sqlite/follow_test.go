package sqlite

import (
	"errors"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

// A tied job takes along what follows it, in the same transaction or not at all.
// Plain ones are not shown to the follower.
func TestP3_AFollowerActsInTheCommitOfTheMove(t *testing.T) {
	opened, err := newFile(t).Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*Store)
	defer s.Close()
	var followed []job.ID
	var fails error
	s.rules.Followers = []jobs.Follower{{Tie: job.TieEvents, Apply: func(_ *jobs.Transition, m *job.Move) error {
		followed = append(followed, m.ID)
		return fails
	}}}
	plain, tied := draft(), draft()
	s.mustEnqueue(t, plain, tied)
	if _, err := s.DB().ExecContext(t.Context(), "UPDATE pawl_job SET ties = 128 WHERE id = ?", tied.ID[:]); err != nil {
		t.Fatal(err)
	}
	w := s.mustRegister(t)
	s.mustClaim(t, claimOf(w, 1, 2))
	ends := []job.End{{ID: plain.ID, Run: 1, To: job.Done}, {ID: tied.ID, Run: 1, To: job.Done}}
	fails = errors.New("no luck")
	if _, err := s.Finish(t.Context(), w, ends); !errors.Is(err, fails) {
		t.Errorf("finish: %v, want that its follower failed", err)
	}
	if n := s.mustCount(t, job.Running); n != 2 {
		t.Errorf("%d jobs run after an end that failed, want both", n)
	}
	fails, followed = nil, nil
	if v, err := s.Finish(t.Context(), w, ends); err != nil || v[0] != job.Applied || v[1] != job.Applied {
		t.Fatal(v, err)
	}
	if len(followed) != 1 || followed[0] != tied.ID {
		t.Errorf("%v were followed, want %v", followed, tied.ID)
	}
}
