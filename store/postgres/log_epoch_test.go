package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// said is a log whose lines can be looked at.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

func (s *said) times(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), part)
}

// put appends events and says where they are.
func put(t *testing.T, s *Store, topic string, ids ...string) (at []stream.Position) {
	t.Helper()
	var drafts []stream.Publication
	for _, id := range ids {
		drafts = append(drafts, eventOf(id, "", topic))
	}
	replies, err := s.Append(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range replies {
		at = append(at, r.Position)
	}
	return at
}

// after is what lies behind a position.
func after(t *testing.T, s *Store, p stream.Position) (ids []string) {
	t.Helper()
	page, err := s.Events(t.Context(), store.EventQuery{After: p})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Events {
		ids = append(ids, e.ID)
	}
	return ids
}

// cursorAt makes a cursor that is at a position.
func cursorAt(t *testing.T, s *Store, name string, at stream.Position) store.CursorMove {
	t.Helper()
	m := store.CursorMove{Name: name, Holder: uuid.New(), To: at}
	state, err := s.OpenCursor(t.Context(), store.CursorOpen{Name: name, Holder: m.Holder})
	if err == nil {
		m.Turn = state.Turn
		state, err = s.MoveCursor(t.Context(), m)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.Turn = state.Turn
	return m
}

// goesOn looks that a log is another one than that of the old positions: they are refused, the
// cursor says so and reads what is left, and what is appended.
func goesOn(t *testing.T, s *Store, m store.CursorMove, old []stream.Position, left ...string) {
	t.Helper()
	for _, p := range old {
		if _, err := s.Events(t.Context(), store.EventQuery{After: p}); !errors.Is(err, store.ErrPosition) {
			t.Errorf("reading behind %s, of another epoch: %v", p.Debug(), err)
		}
	}
	state, err := s.OpenCursor(t.Context(), store.CursorOpen{Name: m.Name, Holder: m.Holder})
	if err != nil || !state.Anchored {
		t.Errorf("the cursor is opened: %+v, %v, want it anchored anew", state, err)
	}
	if got := after(t, s, state.At); !slices.Equal(got, left) {
		t.Errorf("the cursor goes on with %v, want %v", got, left)
	}
	m.Turn = state.Turn
	for _, p := range old {
		if m.To = p; p.IsZero() {
			continue
		}
		if _, err := s.MoveCursor(t.Context(), m); !errors.Is(err, store.ErrPosition) {
			t.Errorf("moving to %s, of another epoch: %v", p.Debug(), err)
		}
	}
	at := put(t, s, "orders", "new")
	if got := after(t, s, state.At); !slices.Equal(got, append(left, "new")) {
		t.Errorf("the cursor goes on with %v, want %v and a new one", got, left)
	}
	m.To = at[0]
	if _, err := s.MoveCursor(t.Context(), m); err != nil {
		t.Error(err)
	}
	if state, err = s.OpenCursor(t.Context(), store.CursorOpen{Name: m.Name, Holder: m.Holder}); err != nil || state.Anchored {
		t.Errorf("opened again: %+v, %v, want it anchored once", state, err)
	}
}

// restored is the address of another database of the server with what the schema holds.
func restored(t *testing.T, db need.Database, dump []byte, edit ...string) string {
	t.Helper()
	name := "restored_" + strings.ReplaceAll(uuid.NewString(), "-", "_")
	admin := newPool(t, db.Server)
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(db.Server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	run(t, bytes.NewReader(dump), "psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", u.String())
	pool := newPool(t, u.String())
	for _, text := range edit {
		if _, err := pool.Exec(t.Context(), strings.ReplaceAll(text, "pawl.", pgx.Identifier{db.Schema}.Sanitize()+".")); err != nil {
			t.Fatal(err)
		}
	}
	return u.String()
}

// run runs a program of Postgres.
func run(t *testing.T, in io.Reader, program string, args ...string) []byte {
	t.Helper()
	cmd := osexec.Command(filepath.Join(need.PostgresBin(t), program), args...)
	cmd.Stdin = in
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, wrong.String())
	}
	return out
}

// A log that was restored from a dump is another one from the moment of the dump on: its
// positions of before are refused, whatever was appended meanwhile, and it says so. A dump that
// is restored twice makes two. A sequence that was not restored is put behind the newest number
// that anybody knows: one that was never used, too, and where only a cursor knows it.
func TestE6_ARestoredLogGoesOnInAnotherEpoch(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	at := put(t, s, "orders", "a", "b", "c")
	m := cursorAt(t, s, "c", at[1])
	dump := run(t, nil, "pg_dump", "--schema", db.Schema, "--dbname", db.Server)
	at = append(at, put(t, s, "orders", "lost", "lost too")...)

	epochs := map[uint32]bool{at[0].Epoch(): true}
	for name, c := range map[string]struct {
		edit []string
		left []string
	}{
		"as it was":       {nil, []string{"c"}},
		"once more":       {nil, []string{"c"}},
		"an old sequence": {[]string{"SELECT setval('pawl.event_seq', 2)"}, []string{"c"}},
		"a new sequence":  {[]string{"SELECT setval('pawl.event_seq', 1, false)"}, []string{"c"}},
		"one number": {[]string{
			"DELETE FROM pawl.event", "SELECT setval('pawl.event_seq', 1, false)", "UPDATE pawl.cursor_at SET seq = 1",
		}, nil},
		"no event": {[]string{"DELETE FROM pawl.event", "SELECT setval('pawl.event_seq', 1, false)"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log said
			again := openOn(t, restored(t, db, dump, c.edit...), Options{Schema: db.Schema}, store.Settings{Logger: log.logger()})
			goesOn(t, again, m, at, c.left...)
			if n := log.times("another epoch"); n != 1 {
				t.Errorf("%d lines of the log say so, want 1", n)
			}
			head, err := again.Head(t.Context())
			if err != nil || epochs[head.Epoch()] {
				t.Errorf("its epoch %d was there before, %v", head.Epoch(), err)
			}
			epochs[head.Epoch()] = true
		})
	}
	if got := after(t, s, at[1]); !slices.Equal(got, []string{"c", "lost", "lost too"}) { // the first one goes on as it was
		t.Errorf("it has %v", got)
	}
}

// A server that is another one under a process that goes on is noticed by whoever comes first:
// a publisher, one in a transaction, one with ids, a cursor that moves, and a reader.
func TestE6_WhoeverComesFirstNoticesAnotherServer(t *testing.T) {
	named := eventOf("named", "", "orders")
	named.Given = true
	for name, first := range map[string]func(t *testing.T, s *Store, m store.CursorMove) error{
		"append": func(t *testing.T, s *Store, _ store.CursorMove) error {
			_, err := s.Append(t.Context(), []stream.Publication{eventOf("first", "", "orders")})
			return err
		},
		"append with an id": func(t *testing.T, s *Store, _ store.CursorMove) error {
			_, err := s.Append(t.Context(), []stream.Publication{named})
			return err
		},
		"append in a transaction": func(t *testing.T, s *Store, _ store.CursorMove) error {
			return pgx.BeginFunc(t.Context(), s.pg.Users, func(tx pgx.Tx) error {
				_, err := s.Within(tx).(store.TxLog).Append(t.Context(), []stream.Publication{eventOf("first", "", "orders")})
				return err
			})
		},
		"append in a transaction with an old snapshot": func(t *testing.T, s *Store, _ store.CursorMove) error {
			tx, err := s.pg.Users.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
			if _, err := tx.Exec(t.Context(), "SELECT 1"); err != nil {
				return err
			}
			_, err = s.Within(tx).(store.TxLog).Append(t.Context(), []stream.Publication{eventOf("first", "", "orders")})
			if !errors.Is(err, store.ErrUnavailable) {
				return fmt.Errorf("%w, want one that may be tried again", err)
			}
			return nil
		},
		"move": func(t *testing.T, s *Store, m store.CursorMove) error {
			if _, err := s.MoveCursor(t.Context(), m); !errors.Is(err, store.ErrPosition) {
				return fmt.Errorf("a cursor moves to a position of another epoch: %w", err)
			}
			return nil
		},
		"open": func(t *testing.T, s *Store, m store.CursorMove) error {
			state, err := s.OpenCursor(t.Context(), store.CursorOpen{Name: m.Name, Holder: uuid.New()})
			if err == nil && !state.Anchored {
				err = fmt.Errorf("the cursor says nothing: %+v", state)
			}
			return err
		},
		"read": func(t *testing.T, s *Store, _ store.CursorMove) error {
			_, err := s.Head(t.Context())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := need.Postgres(t)
			s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
			at := put(t, s, "orders", "a", "b", "c")
			m := cursorAt(t, s, "c", at[0])
			m.To = at[2]
			// As if the process had come to a copy whose sequence was not copied, and that has given the number of
			// its topic to another one.
			for _, text := range []string{
				"UPDATE pawl.epoch SET system = system + 1",
				"SELECT setval('pawl.event_seq', 1)",
				"UPDATE pawl.topic SET name = 'copied'",
			} {
				if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL(text)); err != nil {
					t.Fatal(err)
				}
			}
			if err := first(t, s, m); err != nil {
				t.Error(err)
			}
			put(t, s, "orders", "last")
			page, err := s.Events(t.Context(), store.EventQuery{})
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range page.Events {
				if want := map[bool]string{true: "copied", false: "orders"}[i < 3]; e.Topic != want {
					t.Errorf("%s is in %q, want %q", e.ID, e.Topic, want)
				}
				if i >= 3 && e.Position.Seq() <= at[2].Seq() {
					t.Errorf("%s is at %s, behind what was there", e.ID, e.Position.Debug())
				}
			}
			if e := page.Events[len(page.Events)-1]; e.ID != "last" || e.Position.Epoch() == at[0].Epoch() {
				t.Errorf("the last is %s at %s", e.ID, e.Position.Debug())
			}
		})
	}
}

// A process that comes to a log which others use has nothing to put right, and writes nothing: in a fleet each would
// take a transaction, and lock one row.
func TestP10_ALogInUseIsOpenedWithoutWriting(t *testing.T) {
	db := need.Postgres(t)
	first := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	publishOne(t, first, "one")
	touched := func() (by string) {
		t.Helper()
		if err := newPool(t, db.URL).QueryRow(t.Context(), first.pg.SQL("SELECT concat(xmin, ' ', xmax, ' ', ctid) FROM pawl.epoch")).Scan(&by); err != nil {
			t.Fatal(err)
		}
		return by
	}
	before := touched()
	second := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	if got := readLog(t, second); !slices.Equal(got, []string{"one"}) {
		t.Errorf("the second process reads %v", got)
	}
	if after := touched(); after != before {
		t.Errorf("the row of the epoch was %s and is %s: it was written or locked", before, after)
	}
}
