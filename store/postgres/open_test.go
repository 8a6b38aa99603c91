package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

func newPool(t testing.TB, address string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
