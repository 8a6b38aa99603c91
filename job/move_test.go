package job_test

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

func TestJ12_OnlyBegunRunsCountAsLost(t *testing.T) {
	s := &job.Subject{ID: job.NewID(), State: job.Running, Run: 3, Lost: 4}
	if e := job.Rescue(s, 5, job.Keep{}); e.To != job.Waiting || e.Failure != nil || e.Burn || !e.Rescue || e.Lose {
		t.Errorf("not begun: %+v", e)
	}
	s.Begun = true
	if e := job.Rescue(s, 5, job.Keep{}); e.To != job.Dead || e.Failure == nil || e.Burn || !e.Rescue || !e.Lose {
		t.Errorf("fifth loss: %+v", e)
	}
	s.Lost = 3
	if e := job.Rescue(s, 5, job.Keep{}); e.To != job.Waiting || e.Failure == nil || e.Burn || !e.Lose {
		t.Errorf("fourth loss: %+v", e)
	}
	s.CancelAsked = true
	if e := job.Rescue(s, 5, job.Keep{}); e.To != job.Cancelled {
		t.Errorf("asked to cancel: %+v", e)
	}
}

// A job past its deadline ends in whatever state it is found, and dies where it may.
func TestJ13_WhatExpiresEndsFromEveryState(t *testing.T) {
	for _, from := range []job.State{job.Blocked, job.Waiting, job.Suspended} {
		s := &job.Subject{ID: job.NewID(), State: from}
		e := job.Expire(s, job.Keep{})
		if _, err := job.MoveOf(s, e, time.Now()); err != nil {
			t.Errorf("from %s: %v", from, err)
		}
		if want := job.CanMove(from, job.Dead); (e.To == job.Dead) != want {
			t.Errorf("from %s it ends %s", from, e.To)
		}
	}
}

// A run that nobody holds goes back as it was, unless it was asked to cancel.
func TestJ12_WhatIsGivenBackCostsNothing(t *testing.T) {
	s := &job.Subject{ID: job.NewID(), State: job.Running, Run: 3, Begun: true}
	if e := job.GiveBack(s, job.Keep{}); e.To != job.Waiting || e.Burn || e.Rescue || e.Lose || e.Failure != nil || e.Delay != 0 {
		t.Errorf("given back as %+v", e)
	}
	s.CancelAsked = true
	if e := job.GiveBack(s, job.Keep{}); e.To != job.Cancelled {
		t.Errorf("asked to cancel: %+v", e)
	}
}

// No move leaves a final state, or a running job for its own: a store asks before it writes.
func TestP2_AMoveThatIsNoneIsRefused(t *testing.T) {
	for _, c := range []struct{ from, to job.State }{{job.Done, job.Running}, {job.Dead, job.Done}, {job.Running, job.Running}, {job.Waiting, job.Done}} {
		if _, err := job.MoveOf(&job.Subject{State: c.from}, job.End{To: c.to}, time.Now()); err == nil {
			t.Errorf("from %s to %s", c.from, c.to)
		}
	}
}
