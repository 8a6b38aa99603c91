package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
)

// A transaction that does nothing for longer than TxIdle is ended by the server.
// Its next call says ErrTxTooLong, nothing of it has happened, and who waited for
// what it held goes on.
func TestP8_ATransactionThatSitsTooLongIsEndedByName(t *testing.T) {
	t.Parallel()
	db := need.Postgres(t)
	// Long enough that nobody who is at work sits for so long.
	s, err := postgres.Pool(pool(t, db), postgres.Options{Schema: db.Schema, TxIdle: 3 * time.Second}).Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		name string
		call func(ctx context.Context, tx store.Tx) error
	}{
		{"Exec", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, "select 1")
			return err
		}},
		{"Query", func(ctx context.Context, tx store.Tx) error {
			rows, err := tx.Query(ctx, "select 1")
			if err != nil {
				return err
			}
			for rows.Next() {
			}
			return rows.Close()
		}},
		{"Enqueue", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Enqueue(ctx, []job.Draft{{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 1}})
			return err
		}},
		{"Finish", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Finish(ctx, 1, []job.End{{ID: job.NewID(), Run: 1, To: job.Done}})
			return err
		}},
		{"Commit", func(ctx context.Context, tx store.Tx) error { return tx.Commit(ctx) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			only := job.Draft{Kind: "k", Queue: "q", Priority: 5, Attempts: 1, Unique: job.Unique{Hash: job.UniqueHash(c.name)}}
			tx, err := s.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held := only
			held.ID = job.NewID()
			if _, err := tx.Enqueue(t.Context(), []job.Draft{held}); err != nil {
				t.Fatal(err)
			}
			// This one waits for the key until the server has ended the transaction.
			waited := only
			waited.ID = job.NewID()
			receipts, err := s.Enqueue(t.Context(), []job.Draft{waited})
			if err != nil || receipts[0].Duplicate {
				t.Fatalf("who waited for the key: %+v, %v, want it accepted", receipts, err)
			}
			if err := c.call(t.Context(), tx); !errors.Is(err, store.ErrTxTooLong) || errors.Is(err, job.ErrOutcomeUnknown) {
				t.Errorf("%v, want ErrTxTooLong", err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Errorf("roll back: %v", err)
			}
			found, err := s.Get(t.Context(), []job.ID{held.ID, waited.ID})
			if err != nil || len(found) != 1 || found[0].ID != waited.ID {
				t.Errorf("%d jobs are there, %v, want the one that waited", len(found), err)
			}
		})
	}
}
