package sqlite

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl/store/sqlite/internal/claims"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

// A long row of jobs that this worker cannot run must not hide what lies
// behind it, nor make a claim read all of it.
func TestJ14_KnownWorkBehindUnknownWorkIsFound(t *testing.T) {
	s := open(t, Memory())
	w := s.mustRegister(t)
	const unknown = 25_000
	for range unknown / 5000 {
		list := drafts(5000)
		for i := range list {
			list[i].Kind = "other"
		}
		s.mustEnqueue(t, list...)
	}
	s.mustEnqueue(t, drafts(30)...)
	if first := s.mustClaim(t, claimOf(w, 1, 10)); len(first.Jobs) != 0 || !first.More {
		t.Fatalf("the first claim took %d jobs (more: %v), want it to end at its bound", len(first.Jobs), first.More)
	}
	looks, found := 1, 0
	for seq := int64(2); found < 30; seq++ {
		got := s.mustClaim(t, claimOf(w, seq, 10))
		found += len(got.Jobs)
		if looks++; !got.More && len(got.Jobs) == 0 {
			t.Fatalf("the look ended after %d claims with %d of 30 jobs", looks, found)
		}
	}
	// 25,000 rows at 1,100 a look are 23 looks, the rest starts where they ended.
	if looks > 30 {
		t.Errorf("%d claims for 30 jobs behind %d unknown ones: looks start in front each time", looks, unknown)
	}
}

// While looks go on behind a long row, one starts in front again every few
// seconds: what was passed over for want of a slot is claimed then.
func TestJ14_WhatWasPassedOverIsSeenAgain(t *testing.T) {
	s := open(t, Memory())
	w := s.mustRegister(t)
	rescued := draft()
	s.mustEnqueue(t, rescued)
	if err := s.write(t.Context(), 1, func(tr *jobs.Transition) error { return tr.Exec("UPDATE pawl_job SET rescues = 1") }); err != nil {
		t.Fatal(err)
	}
	list := drafts(3000)
	for i := range list {
		list[i].Kind = "other"
	}
	s.mustEnqueue(t, list...)
	s.mustEnqueue(t, drafts(50)...)

	prefetch := claimOf(w, 1, 2)
	prefetch.Queues[0].Start = 0
	for len(s.mustClaim(t, prefetch).Jobs) == 0 { // passes the rescued job and the unknown ones
		prefetch.Seq++
	}
	next := claimOf(w, prefetch.Seq+1, 1)
	if got := s.mustClaim(t, next).Jobs; len(got) != 1 || got[0].ID == rescued.ID {
		t.Fatalf("claimed %v, want the job behind", got)
	}
	s.SetClockOffset(claims.SweepAgain*time.Microsecond + time.Second)
	next.Seq++
	s.mustClaim(t, next)
	next.Seq++
	got := s.mustClaim(t, next).Jobs
	if len(got) != 1 || got[0].ID != rescued.ID {
		t.Errorf("claimed %v, want the job that was passed over", got)
	}
}
