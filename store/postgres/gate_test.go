package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
)

// Jobs behind a closed gate are no rows that a claim steps over, however many and
// however old they are, also while a snapshot keeps dead entries.
func TestP10_ClosedGatesAreNotVisited(t *testing.T) {
	s := openInternal(t)
	holdSnapshot(t, s)
	c := hire(t, s)
	behind := make([]job.Draft, 3000)
	for i := range behind {
		behind[i] = someDraft(func(d *job.Draft) { d.Gate, d.Priority = int64(i%7+1), 1 })
	}
	c.enqueue(behind...)
	c.enqueue(many(10)...)
	if n := c.visits(s.claims.Frontiers.View(claims.Lane("q", claims.NewOffer(knowsK).Print))); n > 20 {
		t.Errorf("a claim of 10 jobs visits %d entries beside 3000 jobs behind closed gates", n)
	}
	if got := len(c.claim(100)); got != 10 {
		t.Errorf("%d jobs were claimed, want the 10 in front of the gates", got)
	}
}

// A job that somebody's transaction has locked in front of its gate, with many behind
// it that this worker cannot take, does not keep claims from what lies behind them.
// When it is free it goes behind its gate.
func TestP8_ALockedJobInFrontOfItsGateStopsNobody(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	const limit, unknown = 10, 5_000
	rules := job.NewGateRules(map[string]job.LimitSettings{"gated": {Kind: "gated", Concurrent: 5}})
	locked := someDraft(func(d *job.Draft) { d.Kind = "gated" })
	foreign := many(unknown)
	for i := range foreign {
		foreign[i].Kind = "unknown"
	}
	known := someDraft()
	c.enqueue(locked)
	c.enqueue(foreign...)
	c.enqueue(known)
	s.SetClockOffset(time.Second) // a frontier stays a moment behind now
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), s.pg.SQL("SELECT FROM pawl.job WHERE namespace = $1 AND id = $2 FOR UPDATE"), s.pg.Namespace, locked.ID); err != nil {
		t.Fatal(err)
	}
	claim := func() (list []job.ID) {
		t.Helper()
		c.seq++
		claimed, err := s.Claim(t.Context(), store.Claim{
			Worker: c.worker, Seq: c.seq, Offer: job.Offer{Kinds: map[string]int{"gated": 0, "k": 0}}, Gates: rules,
			Queues: []store.QueueClaim{{Queue: "q", Limit: limit, Start: limit}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range claimed.Jobs {
			list = append(list, j.ID)
		}
		return list
	}
	enough := 3*unknown/claims.LookBound(limit) + 5 // a sweep begins in front again
	take := func(what string, want job.ID) {
		t.Helper()
		var got []job.ID
		for range enough {
			got = append(got, claim()...)
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %d claims took %v, want %s", what, enough, got, want)
		}
	}
	take("while it is locked", known.ID)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.SetClockOffset(time.Hour) // a sweep is due
	if _, err := s.Beat(t.Context(), store.Beat{Worker: c.worker}); err != nil {
		t.Fatal(err)
	}
	take("when it is free", locked.ID)
}
