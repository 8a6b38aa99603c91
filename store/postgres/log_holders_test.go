package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// holders are the applications of those who hold readers back.
func holders(t *testing.T, s *Store) (names []string) {
	t.Helper()
	list, err := s.LogHolders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range list {
		names = append(names, h.Application)
	}
	return names
}

// Who has appended and is still open is named, first the one that readers wait for; nobody else
// is: not who writes, who appended elsewhere, or who has undone it. When it ends, all go on.
func TestE5_WhyNamesWhoHoldsReadersBack(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	other := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{Namespace: "other"})
	open := func(name string) pgx.Tx {
		tx, err := newPool(t, with(t, db.URL, "application_name", name)).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return tx
	}
	in := func(to *Store, tx pgx.Tx, id string) {
		t.Helper()
		if _, err := to.Within(tx).(store.TxLog).Append(t.Context(), []stream.Publication{eventOf(id, "", "orders")}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(tx pgx.Tx, text string) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	want := func(names ...string) {
		t.Helper()
		if got := holders(t, s); !slices.Equal(got, names) {
			t.Fatalf("readers wait for %q, want %q", got, names)
		}
	}
	want()
	writes, elsewhere, undoes, first, second := open("writes"), open("elsewhere"), open("undoes"), open("first"), open("second")
	run(writes, "CREATE TEMPORARY TABLE mine (n integer)")
	in(other, elsewhere, "elsewhere")
	run(undoes, "SAVEPOINT a")
	in(s, undoes, "undone")
	want("undoes")
	in(s, first, "first")
	in(s, second, "second")
	in(s, first, "first again")
	want("undoes", "first", "second")
	run(undoes, "ROLLBACK TO SAVEPOINT a")
	want("first", "second")

	list, err := s.LogHolders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := list[0]
	if pid := int(first.Conn().PgConn().PID()); h.PID != pid || h.User != "postgres" || h.State != "idle in transaction" || h.Prepared ||
		h.Began.IsZero() || h.Query.Before(h.Began) || h.Age <= 0 {
		t.Errorf("it is %+v", h)
	}
	if text := h.String(); !strings.Contains(text, "(first, user postgres, idle in transaction") {
		t.Errorf("it is called %s", text)
	}
	if got := readLog(t, s); got != nil {
		t.Errorf("%v can be read", got)
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("second")
	if got := readLog(t, s); !slices.Equal(got, []string{"first"}) {
		t.Errorf("%v can be read, want what lies before the second one's mark", got)
	}
	if err := second.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	want()
	if got := readLog(t, s); !slices.Equal(got, []string{"first", "first again"}) {
		t.Errorf("%v can be read", got)
	}
}
