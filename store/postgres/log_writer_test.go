package postgres

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// A try that finds nothing to do behind one whose answer was lost says nothing of that one: the writer's row may be gone,
// or the server may be another, which never had the commit. What is accepted is there, where the answer says.
func TestP1_OnlyTheWritersRowSaysThatAnAppendHasHappened(t *testing.T) {
	for _, c := range []struct {
		name   string
		fate   pgproxy.Fate
		skip   int      // commits that append and are delivered
		before []string // what becomes of the database
	}{
		{name: "the row is gone after a day, and the commit is dropped", fate: pgproxy.Drop, before: []string{"DELETE FROM pawl.event_writer"}},
		{
			name: "a standby without the last commit was promoted, and the next is dropped", fate: pgproxy.Drop,
			before: []string{"UPDATE pawl.event_writer SET number = number - 1", "UPDATE pawl.epoch SET system = system + 1"},
		},
		{
			name: "the database was restored to before what the process has seen, and an answer is lost", fate: pgproxy.Cut, skip: 1,
			before: []string{"DELETE FROM pawl.event", "SELECT setval('pawl.event_seq', 1, false)", "UPDATE pawl.epoch SET system = system + 1"},
		},
		{name: "nothing has become of it", fate: pgproxy.Cut},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := need.Postgres(t)
			proxy := need.Proxy(t, db.URL)
			s := openOn(t, proxy.URL(), Options{Schema: db.Schema}, store.Settings{})
			publishOne(t, s, "before")
			for _, text := range c.before {
				exec(t, s, text)
			}
			var mu sync.Mutex
			met, left := false, c.skip
			proxy.Judge(func(commit pgproxy.Commit) pgproxy.Fate {
				mu.Lock()
				defer mu.Unlock()
				if met || !strings.Contains(strings.Join(commit.Statements, "; "), "INSERT INTO \""+db.Schema+"\".event ") {
					return pgproxy.Deliver
				}
				if left--; left >= 0 {
					return pgproxy.Deliver
				}
				met = true
				return c.fate
			})
			replies, err := s.Append(t.Context(), []stream.Publication{eventOf("after", "", "orders")})
			proxy.Judge(nil)
			if err != nil || !met {
				t.Fatalf("%v, and the commit has met its fate: %t", err, met)
			}
			page, err := s.Events(t.Context(), store.EventQuery{})
			if err != nil {
				t.Fatal(err)
			}
			var at []string
			for _, e := range page.Events {
				if e.ID == "after" {
					at = append(at, e.Position.Debug())
				}
			}
			if len(at) != 1 || at[0] != replies[0].Position.Debug() {
				t.Errorf("it was accepted at %s and is at %v", replies[0].Position.Debug(), at)
			}
		})
	}
}

// A process remembers so many topics. What it forgets while it learns others has its number all the same.
func TestP10_MoreTopicsThanAreRemembered(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	for n := 0; n < 101_000; {
		var list []stream.Publication
		for range 999 {
			n++
			list = append(list, eventOf(fmt.Sprint(n), "", fmt.Sprintf("t.%d", n)))
		}
		if _, err := s.Append(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	var lost int
	if err := newPool(t, db.URL).QueryRow(t.Context(), s.pg.SQL("SELECT count(*) FROM pawl.event WHERE topic = 0")).Scan(&lost); err != nil {
		t.Fatal(err)
	}
	if lost > 0 {
		t.Errorf("%d events are of no topic", lost)
	}
}
