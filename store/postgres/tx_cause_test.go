package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// The user's own SQL says why its context ended: that a lease was lost is not a
// failure of the statement.
func TestP2_SQLOfAHandlerSaysThatItsLeaseIsLost(t *testing.T) {
	s := openInternal(t)
	ctx, lose := context.WithCancelCause(t.Context())
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	lose(job.ErrLeaseLost)
	if _, err := tx.Exec(ctx, "SELECT 1"); !errors.Is(err, job.ErrLeaseLost) {
		t.Errorf("exec: %v, want ErrLeaseLost", err)
	}
	if _, err := tx.Query(ctx, "SELECT 1"); !errors.Is(err, job.ErrLeaseLost) {
		t.Errorf("query: %v, want ErrLeaseLost", err)
	}
}

// Rows that were not closed are the caller's mistake, not an outage.
func TestP8_OpenRowsAreNoOutage(t *testing.T) {
	s := openInternal(t)
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	rows, err := tx.Query(t.Context(), "SELECT generate_series(1, 1000)")
	if err != nil || !rows.Next() {
		t.Fatal(err)
	}
	_, err = tx.Exec(t.Context(), "SELECT 1")
	if !errors.Is(err, job.ErrInvalid) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a statement beside open rows: %v, want ErrInvalid", err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}
