package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/stream"
)

// Behind a pooler that hands sessions on, a mark is the transaction's: it holds readers back in
// users' transactions and in the store's own, a savepoint undoes it, the next transaction of the
// session takes its own, and who holds one is named.
func TestE5_MarksBehindAPooler(t *testing.T) {
	address := startPooler(t).database(t)
	query := address.Query()
	query.Set("pawl_poll_only", "true")
	address.RawQuery = query.Encode()
	e, err := pawl.New(parse(t, address), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	query = address.Query()
	query.Del("pawl_poll_only")
	query.Del("pawl_schema")
	query.Set("default_query_exec_mode", "exec")
	query.Set("application_name", "shop")
	address.RawQuery = query.Encode()
	users, err := pgxpool.New(t.Context(), address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(users.Close)
	begin := func() pgx.Tx {
		t.Helper()
		tx, err := users.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return tx
	}
	in := func(tx pgx.Tx, id string) {
		t.Helper()
		if _, err := postgres.Within(e, tx).Publish(t.Context(), "orders", 1, pawl.Key(id)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(tx pgx.Tx, text string) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	own := func(id string) {
		t.Helper()
		_, err := e.Publish(t.Context(), "orders", 1, pawl.Key(id))
		must(err)
	}
	want := func(waits bool, keys ...string) {
		t.Helper()
		var got []string
		for ev, err := range e.Events(t.Context(), stream.Filter{}, stream.FromStart()) {
			must(err)
			got = append(got, ev.Key)
		}
		if !slices.Equal(got, keys) {
			t.Errorf("%v can be read, want %v", got, keys)
		}
		list, err := e.WhyBehind(t.Context())
		must(err)
		if (len(list) > 0) != waits || waits && (list[0].PID == 0 || list[0].State != "idle in transaction" || !strings.Contains(list[0].String(), "shop")) {
			t.Errorf("readers wait for %+v", list)
		}
	}

	undone := begin()
	run(undone, "SAVEPOINT a")
	in(undone, "undone")
	own("a")
	want(true)
	run(undone, "ROLLBACK TO SAVEPOINT a")
	want(false, "a")
	in(undone, "b")
	own("c")
	want(true, "a")
	must(undone.Commit(t.Context()))
	want(false, "a", "b", "c")

	for _, id := range []string{"d", "e", "f"} { // sessions that others have used
		tx := begin()
		in(tx, id)
		in(tx, id+" too")
		must(tx.Commit(t.Context()))
	}
	last := begin()
	in(last, "last")
	own("g")
	done := []string{"a", "b", "c", "d", "d too", "e", "e too", "f", "f too"}
	want(true, done...)
	must(last.Rollback(t.Context()))
	want(false, append(done, "g")...)

	err = e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
		_, err := tx.Publish(ctx, "orders", 1, pawl.Key("h"))
		return err
	})
	must(err)
	want(false, append(done, "g", "h")...)
}
