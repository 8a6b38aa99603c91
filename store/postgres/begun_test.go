package postgres_test

import (
	"strings"
	"testing"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A transaction that is still open when the store closes holds neither its keys
// nor the process.
func TestP3_CloseUndoesAnOpenTransaction(t *testing.T) {
	db := need.Postgres(t)
	open := func() store.Store {
		opener, err := store.Parse(db.Server + "&pawl_schema=" + db.Schema)
		if err != nil {
			t.Fatal(err)
		}
		s, err := opener.Open(t.Context(), store.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, other := open(), open()
	defer other.Close()
	draft := func() []job.Draft {
		return []job.Draft{{ID: job.NewID(), Queue: "q", Kind: "k", Priority: 5, Attempts: 1, Unique: job.Unique{Hash: []byte("x")}}}
	}
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Enqueue(t.Context(), draft()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "1 connections are still held") {
		t.Errorf("close: %v, want the one connection that is held", err)
	}
	receipts, err := other.Enqueue(t.Context(), draft())
	if err != nil || receipts[0].Duplicate {
		t.Errorf("its key is not free: %v, %v", receipts, err)
	}
	_, err = tx.Enqueue(t.Context(), draft())
	wantErr(t, "enqueue", err, store.ErrClosed)
	wantErr(t, "commit", tx.Commit(t.Context()), store.ErrClosed)
}
