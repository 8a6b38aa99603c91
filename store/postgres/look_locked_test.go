package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
)

// A job that somebody's transaction has locked, in front of many that this worker
// cannot take, does not keep claims from what lies behind them.
func TestP8_ALockedJobInFrontOfUnknownKindsStopsNobody(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	locked := someDraft()
	c.enqueue(locked)
	const limit, unknown = 10, 5_000
	foreign := many(unknown)
	for i := range foreign {
		foreign[i].Kind = "unknown"
	}
	c.enqueue(foreign...)
	known := someDraft()
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
	enough := 3*unknown/claims.LookBound(limit) + 5 // a sweep begins in front again
	var got []job.ID
	for range enough {
		for _, j := range c.claim(limit) {
			got = append(got, j.ID)
		}
	}
	if len(got) != 1 || got[0] != known.ID {
		t.Errorf("%d claims took %v, want %s", enough, got, known.ID)
	}
}
