package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/sqlite"
)

// A transaction that is missing, mostly after an error that nobody looked at, is
// refused with words at its first use. So is one for an engine on another store.
func TestJ2_WithinNilIsRefused(t *testing.T) {
	db := need.Postgres(t)
	e, err := pawl.New(postgres.Pool(pool(t, db), postgres.Options{Schema: db.Schema}), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	embedded, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	var unset *pgxpool.Tx
	for _, c := range []struct {
		name string
		tx   *pawl.Tx
		want string
	}{
		{"Within nil", postgres.Within(e, nil), "nil"},
		{"Within a nil *pgxpool.Tx", postgres.Within(e, unset), "nil"},
		{"WithinSQL nil", postgres.WithinSQL(e, nil), "nil"},
		{"Within on SQLite", postgres.Within(embedded, nil), "not on Postgres"},
		{"WithinSQL on SQLite", postgres.WithinSQL(embedded, nil), "not on Postgres"},
		{"sqlite.Within", sqlite.Within(e, nil), "not on SQLite"},
	} {
		_, enqueue := c.tx.Enqueue(t.Context(), pawl.RawArgs("mail", nil))
		_, exec := c.tx.Exec(t.Context(), "select 1")
		_, query := c.tx.Query(t.Context(), "select 1")
		for call, err := range map[string]error{"enqueue": enqueue, "exec": exec, "query": query} {
			if !errors.Is(err, pawl.ErrForeignTx) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %s: %v", c.name, call, err)
			}
		}
	}
}
