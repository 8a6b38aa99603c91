package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlwork/pawl/job"
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
