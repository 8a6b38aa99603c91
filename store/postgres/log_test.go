package postgres

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
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

// An event with an id whose answer was lost is there once, and is no duplicate to who sent it.
func TestE2_LostAnswers_Named(t *testing.T) {
	loseEach(t, lostCase{name: "append with ids", play: func(l *lossy) (func(context.Context) error, func(error)) {
		topic := "orders." + uuid.NewString()
		named := func(id string) stream.Publication {
			e := eventOf(id, "", topic)
			e.Given, e.Idempotency = true, "key-"+id
			return e
		}
		if _, err := l.s.Append(l.t.Context(), []stream.Publication{named("before")}); err != nil {
			l.t.Fatal(err)
		}
		plain := uuid.NewString()
		var replies []stream.PublishReply
		call := func(ctx context.Context) (err error) {
			replies, err = l.s.Append(ctx, []stream.Publication{named("a"), named("before"), named("b"), named("a"), eventOf(plain, "", topic)})
			return err
		}
		return call, func(err error) {
			l.surely(err)
			match, err := stream.Filter{Topic: topic}.Matcher()
			if err != nil {
				l.t.Fatal(err)
			}
			page, err := l.s.Events(l.t.Context(), store.EventQuery{Match: match})
			if err != nil {
				l.t.Fatal(err)
			}
			var got []string
			for _, e := range page.Events {
				got = append(got, e.ID)
			}
			if want := []string{"before", "a", "b", plain}; !slices.Equal(got, want) {
				l.t.Errorf("there are %v, want %v", got, want)
			}
			for i, duplicate := range []bool{false, true, false, true, false} {
				if replies[i].Duplicate != duplicate {
					l.t.Errorf("%d: duplicate is %v", i, replies[i].Duplicate)
				}
			}
		}
	}})
}

// A move whose answer was lost has happened once, and its reader goes on.
func TestE6_LostAnswers_Cursor(t *testing.T) {
	loseEach(t, lostCase{name: "move a cursor", play: func(l *lossy) (func(context.Context) error, func(error)) {
		at, err := l.s.Append(l.t.Context(), []stream.Publication{eventOf("a", "", "orders"), eventOf("b", "", "orders")})
		if err != nil {
			l.t.Fatal(err)
		}
		holder := uuid.New()
		state, err := l.s.OpenCursor(l.t.Context(), store.CursorOpen{Name: "c", Holder: holder})
		if err != nil {
			l.t.Fatal(err)
		}
		opened := state.Turn
		move := func(ctx context.Context, turn int64, to stream.Position) (store.CursorState, error) {
			return l.s.MoveCursor(ctx, store.CursorMove{Name: "c", Turn: turn, Holder: holder, To: to})
		}
		call := func(ctx context.Context) (err error) {
			state, err = move(ctx, state.Turn, at[0].Position)
			return err
		}
		return call, func(err error) {
			l.surely(err)
			if _, err := move(l.t.Context(), state.Turn, at[1].Position); err != nil {
				l.t.Errorf("the next move: %v", err)
			}
			if i, err := l.s.CursorNamed(l.t.Context(), "c"); err != nil || !i.At.Equal(at[1].Position) || i.Turn != opened+2 {
				l.t.Errorf("it is %+v, %v", i, err)
			}
		}
	}})
}
