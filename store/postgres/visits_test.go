package postgres

import (
	"strings"
	"testing"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/visits"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// sentStatements keeps what a store sends, so that a test can count what that
// visits.
type sentStatements struct {
	*visits.Sent
	t testing.TB
	s *Store
}

// openTraced opens a store on a schema of the test's own.
func openTraced(t testing.TB) (*Store, *sentStatements) {
	t.Helper()
	db := need.Postgres(t)
	return openTracedOn(t, db.URL, db.Schema)
}

func openTracedOn(t testing.TB, address, schema string) (*Store, *sentStatements) {
	t.Helper()
	sent := &sentStatements{Sent: visits.Connect(t, address), t: t}
	sent.Settings = []string{strings.NewReplacer("$1", "'0'", "$2", "'0'").Replace(pg.SettingsText)}
	opened, err := Pool(sent.Pool, Options{Schema: schema}).Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	sent.s, _ = of(opened)
	return sent.s, sent
}

// visits counts the rows and entries of indexes of jobs that a call visits, which only
// reads.
func (s *sentStatements) visits(call func()) int {
	s.t.Helper()
	return s.visitsOf("job", call)
}

// visitsOf counts those of tables whose names begin so.
func (s *sentStatements) visitsOf(tables string, call func()) int {
	s.t.Helper()
	return s.During(s.s.pg.Texts.Schema, tables, call)
}
