package postgres

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// trimAll trims until there is nothing left to do.
func trimAll(t *testing.T, s *Store, keep stream.TopicSettings) (removed int) {
	t.Helper()
	for q := (store.TrimRequest{Limit: 500, Keep: func(string) stream.TopicSettings { return keep }}); ; {
		reply, err := s.Trim(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if removed += reply.Removed; reply.Removed+reply.Counted == 0 && reply.Next == "" {
			return removed
		}
		q.After = reply.Next
	}
}

// Readers begin at the low marks: what was removed is not walked, also while a snapshot keeps
// the entries of indexes.
func TestE18_AHeldSnapshotDoesNotMakeReadersWalk(t *testing.T) {
	s, sent := openTraced(t)
	holder, err := newPool(t, s.pg.Users.Config().ConnString()).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	var drafts []stream.Publication
	for i := range 3000 {
		drafts = append(drafts, eventOf(fmt.Sprint(i), "", []string{"a.x", "a.y"}[i%2]))
	}
	if _, err := s.Append(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "SELECT 1"); err != nil { // it sees all of them
		t.Fatal(err)
	}
	if n := trimAll(t, s, stream.TopicSettings{KeepCount: 5}); n != 2990 {
		t.Errorf("%d were removed", n)
	}
	for _, topic := range []string{"a.x", "a.*", ">"} {
		match, err := stream.Filter{Topic: topic}.Matcher()
		if err != nil {
			t.Fatal(err)
		}
		for name, read := range map[string]func(context.Context, store.EventQuery) (store.EventPage, error){"from the start": s.Events, "back": s.EventsBack} {
			if topic == ">" && name == "back" {
				continue // it goes by number, and people look at one topic
			}
			visited := sent.visitsOf("event", func() {
				page, err := read(t.Context(), store.EventQuery{Match: match, Limit: 50})
				if err != nil || len(page.Events) < 5 {
					t.Errorf("%d events, %v", len(page.Events), err)
				}
			})
			if visited > 100 {
				t.Errorf("%s %s visits %d rows and entries", topic, name, visited)
			}
		}
	}
	if n := trimAll(t, s, stream.TopicSettings{KeepCount: 1}); n != 8 {
		t.Errorf("%d more were removed", n)
	}
	visited := sent.visitsOf("event", func() {
		if _, err := s.TopicNamed(t.Context(), "a.x"); err != nil {
			t.Error(err)
		}
	})
	if visited > 20 {
		t.Errorf("the newest event of a topic visits %d rows and entries", visited)
	}
}

// What lies past the head, behind a transaction that is still open, is not trimmed: nobody
// could have read it.
func TestE18_NothingPastTheHeadIsTrimmed(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	publishOne(t, s, "first")
	tx, err := newPool(t, db.URL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := s.Within(tx).(store.TxLog).Append(t.Context(), []stream.Publication{eventOf("open", "", "orders")}); err != nil {
		t.Fatal(err)
	}
	short := eventOf("short", "", "orders")
	short.TTL = time.Second
	if _, err := s.Append(t.Context(), []stream.Publication{short}); err != nil {
		t.Fatal(err)
	}
	publishOne(t, s, "second")
	s.SetClockOffset(2 * time.Hour)
	if n := trimAll(t, s, stream.TopicSettings{KeepFor: time.Hour, KeepCount: 1}); n != 1 {
		t.Errorf("%d were removed, want the one before the head", n)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := readLog(t, s); !slices.Equal(got, []string{"open", "second"}) {
		t.Errorf("%v can be read", got)
	}
	if n := trimAll(t, s, stream.TopicSettings{KeepFor: time.Hour}); n != 2 {
		t.Errorf("%d were removed afterwards", n)
	}
}

// A trim whose answer was lost has removed what it should, and counts right.
func TestE18_LostAnswers_Trim(t *testing.T) {
	loseEach(t, lostCase{name: "trim", play: func(l *lossy) (func(context.Context) error, func(error)) {
		topic := "trim." + uuid.NewString()
		var drafts []stream.Publication
		for i := range 10 {
			e := eventOf(fmt.Sprint(i), "", topic)
			if i == 7 {
				e.TTL = time.Microsecond
			}
			drafts = append(drafts, e)
		}
		if _, err := l.s.Append(l.t.Context(), drafts); err != nil {
			l.t.Fatal(err)
		}
		keep := func(name string) (s stream.TopicSettings) {
			if name == topic {
				s.KeepCount = 4
			}
			return s
		}
		call := func(ctx context.Context) error {
			_, err := l.s.Trim(ctx, store.TrimRequest{Keep: keep, Limit: 100})
			return err
		}
		return call, func(err error) {
			l.surely(err)
			state, err := l.s.TopicNamed(l.t.Context(), topic)
			if err != nil || state.Kept != 4 {
				l.t.Errorf("%+v, %v, want 4 kept", state, err)
			}
			match, _ := stream.Filter{Topic: topic}.Matcher()
			page, err := l.s.Events(l.t.Context(), store.EventQuery{Match: match})
			if err != nil || len(page.Events) != 4 || page.Events[0].ID != "5" {
				l.t.Errorf("%d events are left, %v", len(page.Events), err)
			}
		}
	}})
}
