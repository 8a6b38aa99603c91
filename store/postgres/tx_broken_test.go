package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
)

// A transaction whose connection breaks has done nothing, and each of its calls
// says so in the same word.
func TestP8_ATransactionThatLostItsServerIsUnavailable(t *testing.T) {
	server := need.PostgresServer(t)
	s, err := postgres.Pool(connect(t, server.URL()), postgres.Options{}).Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		name string
		call func(ctx context.Context, tx store.Tx) error
	}{
		{"Exec", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Exec(ctx, "select 1")
			return err
		}},
		{"Enqueue", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Enqueue(ctx, []job.Draft{{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 1}})
			return err
		}},
		{"Finish", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Finish(ctx, 1, []job.End{{ID: job.NewID(), Run: 1, To: job.Done}})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tx, err := s.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "create table effect_"+c.name+" (n integer)"); err != nil {
				t.Fatal(err)
			}
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time the connection is known to be broken
				if err := c.call(t.Context(), tx); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%v, want ErrUnavailable", err)
				}
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Errorf("roll back: %v", err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Connections of the user's pool that broke while they were idle, all of them as
// after a restart of the server, keep no transaction from beginning.
func TestP8_ATransactionBeginsAfterItsConnectionsBroke(t *testing.T) {
	db := need.Postgres(t)
	users := pool(t, db)
	s, err := postgres.Pool(users, postgres.Options{Schema: db.Schema}).Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	idle := make([]store.Tx, users.Config().MaxConns)
	pids := make([]int, len(idle))
	for i := range idle {
		if idle[i], err = s.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows, err := idle[i].Query(t.Context(), "select pg_backend_pid()")
		if err != nil || !rows.Next() || rows.Scan(&pids[i]) != nil || rows.Close() != nil {
			t.Fatalf("%v, process %d", err, pids[i])
		}
	}
	for _, tx := range idle {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := connect(t, db.URL).Exec(t.Context(), "select pg_terminate_backend(pid, 60000) from unnest($1::int[]) as pid", pids); err != nil {
		t.Fatal(err)
	}
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatalf("%v, want a new connection", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}
