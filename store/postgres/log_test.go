package postgres

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// readLog is the ids of what can be read.
func readLog(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	page, err := s.Events(t.Context(), store.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Events {
		ids = append(ids, e.ID)
	}
	return ids
}

func publishOne(t *testing.T, s *Store, id string) {
	t.Helper()
	if _, err := s.Append(t.Context(), []stream.Publication{eventOf(id, "", "orders")}); err != nil {
		t.Fatal(err)
	}
}

// An open transaction that has appended holds readers back, until it ends. One that has not,
// one of another namespace and one that undid its append delay nobody, however long they last.
func TestE5_OnlyWhoAppendedHoldsReadersBack(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	other := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{Namespace: "other"})
	users := newPool(t, db.URL)
	begin := func() pgx.Tx {
		tx, err := users.BeginTx(t.Context(), pgx.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return tx
	}
	put := func(to *Store, tx pgx.Tx, id string) {
		if _, err := to.Within(tx).(store.TxLog).Append(t.Context(), []stream.Publication{eventOf(id, "", "orders")}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(tx pgx.Tx, text string) {
		if _, err := tx.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	want := func(ids ...string) {
		t.Helper()
		if got := readLog(t, s); !slices.Equal(got, ids) {
			t.Fatalf("%v can be read, want %v", got, ids)
		}
	}
	want()
	unrelated, elsewhere, undone := begin(), begin(), begin()
	run(unrelated, "CREATE TEMPORARY TABLE mine (n integer)")
	put(other, elsewhere, "elsewhere")
	run(undone, "SAVEPOINT a")
	put(s, undone, "undone")
	publishOne(t, s, "first")
	want() // it is behind the mark of the one that is undone now
	run(undone, "ROLLBACK TO SAVEPOINT a")
	want("first")

	open := begin()
	put(s, open, "open")
	publishOne(t, s, "second")
	want("first")
	put(s, open, "open too")
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("first", "open", "second", "open too")

	put(s, undone, "again") // it takes another mark
	publishOne(t, s, "third")
	want("first", "open", "second", "open too")
	if err := undone.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("first", "open", "second", "open too", "third")
}

// A commit whose answer was lost is not done again, and its events have the positions that
// they got.
func TestE2_LostAnswers_Append(t *testing.T) {
	loseEach(t, lostCase{name: "append", play: func(l *lossy) (func(context.Context) error, func(error)) {
		before, err := l.s.Append(l.t.Context(), []stream.Publication{eventOf("before", "", "orders")})
		if err != nil {
			l.t.Fatal(err)
		}
		var receipts []stream.PublishReply
		call := func(ctx context.Context) (err error) {
			receipts, err = l.s.Append(ctx, []stream.Publication{eventOf("a", "", "orders"), eventOf("b", "", "orders"), eventOf("a", "", "orders")})
			return err
		}
		return call, func(err error) {
			l.surely(err)
			page, err := l.s.Events(l.t.Context(), store.EventQuery{After: before[0].Position})
			if err != nil || len(page.Events) != 3 {
				l.t.Fatalf("%d events, want 3: %v", len(page.Events), err)
			}
			for i, r := range receipts {
				if e := page.Events[i]; e.ID != r.ID || e.Position != r.Position {
					l.t.Errorf("%s is at %s, its reply says %s at %s", e.ID, e.Position.Debug(), r.ID, r.Position.Debug())
				}
			}
		}
	}})
}
