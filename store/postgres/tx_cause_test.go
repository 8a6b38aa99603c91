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

// So do the store's statements in it, also when the context ends while one of them
// is under way.
func TestP2_AStatementUnderWaySaysThatItsLeaseIsLost(t *testing.T) {
	s := openInternal(t)
	draft := someDraft()
	for name, call := range map[string]func(context.Context, store.Tx) error{
		"enqueue": func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Enqueue(ctx, []job.Draft{draft})
			return err
		},
		"finish": func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Finish(ctx, 1, []job.End{{ID: draft.ID, Run: 1, To: job.Done}})
			return err
		},
		"exec": func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, s.pg.SQL("DELETE FROM pawl.job"))
			return err
		},
		"rows": func(ctx context.Context, tx store.Tx) error {
			rows, err := tx.Query(ctx, s.pg.SQL("SELECT id FROM pawl.job"))
			if err != nil {
				return err
			}
			for rows.Next() {
			}
			return errors.Join(rows.Err(), rows.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			other, err := s.pg.Users.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = other.Rollback(t.Context()) }()
			if _, err := other.Exec(t.Context(), s.pg.SQL("LOCK TABLE pawl.job")); err != nil {
				t.Fatal(err)
			}
			ctx, lose := context.WithCancelCause(t.Context())
			defer lose(nil)
			tx, err := s.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(t.Context()) }()
			ended := make(chan error, 1)
			go func() { ended <- call(ctx, tx) }()
			for waits := false; !waits; {
				err := other.QueryRow(t.Context(), s.pg.SQL("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'pawl.job'::regclass)")).Scan(&waits)
				if err != nil {
					t.Fatal(err)
				}
			}
			lose(job.ErrLeaseLost)
			if err := <-ended; !errors.Is(err, job.ErrLeaseLost) {
				t.Errorf("%v, want ErrLeaseLost", err)
			}
		})
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
