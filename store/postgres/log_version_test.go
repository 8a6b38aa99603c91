package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

func versionOf(id, topic, key string, x stream.Expect) stream.Publication {
	e := eventOf(id, "", topic)
	e.Key = key
	e.Versioned, e.Expect = true, x
	return e
}

// A transaction that holds a key's version keeps nobody waiting but who wants that key, and
// readers only as any that has appended.
func TestE3_AHeldVersionStopsNobodyElse(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	append := func(e stream.Publication) error {
		_, err := s.Append(t.Context(), []stream.Publication{e})
		return err
	}
	if err := append(versionOf("1", "v", "held", stream.NoStream())); err != nil {
		t.Fatal(err)
	}
	tx, err := newPool(t, db.URL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	within := s.Within(tx).(store.TxLog)
	if _, err := within.Append(t.Context(), []stream.Publication{versionOf("2", "v", "held", stream.Version(1))}); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() { waits <- append(versionOf("3", "v", "held", stream.Version(1))) }()
	for blocked := false; !blocked; { // each look asks the server
		const look = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))"
		if err := s.pg.Work.QueryRow(t.Context(), look, int32(tx.Conn().PgConn().PID())).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		for _, e := range []stream.Publication{
			versionOf(uuid.NewString(), "v", "free", stream.AnyVersion()), eventOf(uuid.NewString(), "", "plain"),
			versionOf(uuid.NewString(), "w", "held", stream.AnyVersion()),
		} {
			if err := append(e); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
	}
	select {
	case err := <-waits:
		t.Fatalf("who wants the key did not wait: %v", err)
	default:
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; !errors.Is(err, stream.ErrVersion) {
		t.Errorf("who waited got %v, want a conflict", err)
	}
}

// A versioned event whose answer was lost is there once, with its version, and is no
// duplicate to who sent it.
func TestE3_LostAnswers_Versioned(t *testing.T) {
	loseEach(t, lostCase{name: "append with versions", play: func(l *lossy) (func(context.Context) error, func(error)) {
		topic := "orders." + uuid.NewString()
		if _, err := l.s.Append(l.t.Context(), []stream.Publication{versionOf("before", topic, "k", stream.NoStream())}); err != nil {
			l.t.Fatal(err)
		}
		var replies []stream.PublishReply
		call := func(ctx context.Context) (err error) {
			replies, err = l.s.Append(ctx, []stream.Publication{
				versionOf("a", topic, "k", stream.Version(1)), versionOf("b", topic, "k", stream.Version(2)), versionOf("c", topic, "l", stream.NoStream()),
			})
			return err
		}
		return call, func(err error) {
			l.surely(err)
			for i, want := range []int64{2, 3, 1} {
				if r := replies[i]; r.Version != want || r.Duplicate {
					l.t.Errorf("%d: %+v, want version %d", i, r, want)
				}
			}
			next, err := l.s.Append(l.t.Context(), []stream.Publication{versionOf("next", topic, "k", stream.Version(3))})
			if err != nil || next[0].Version != 4 {
				l.t.Errorf("the next: %+v, %v", next, err)
			}
		}
	}})
}

// What was due is appended once, whatever is lost on the way.
func TestE4_LostAnswers_Due(t *testing.T) {
	loseEach(t, lostCase{name: "append what is due", play: func(l *lossy) (func(context.Context) error, func(error)) {
		topic := "orders." + uuid.NewString()
		var drafts []stream.Publication
		for _, id := range []string{"a", "b"} {
			e := versionOf(id, topic, "k", stream.AnyVersion())
			e.Given, e.In = true, time.Microsecond
			drafts = append(drafts, e)
		}
		if _, err := l.s.Append(l.t.Context(), drafts); err != nil {
			l.t.Fatal(err)
		}
		call := func(ctx context.Context) error {
			_, err := l.s.AppendDue(ctx, 10)
			return err
		}
		return call, func(err error) {
			l.surely(err)
			match, err := stream.Filter{Topic: topic}.Matcher()
			if err != nil {
				l.t.Fatal(err)
			}
			page, err := l.s.Events(l.t.Context(), store.EventQuery{Match: match})
			if err != nil || len(page.Events) != 2 || page.Events[1].Version != 2 {
				l.t.Errorf("%+v, %v, want both, once", page.Events, err)
			}
			again, err := l.s.Append(l.t.Context(), drafts[:1])
			if err != nil || !again[0].Duplicate || again[0].Position != page.Events[0].Position {
				l.t.Errorf("again: %+v, %v", again, err)
			}
		}
	}})
}

// A delayed event whose answer was lost waits once.
func TestE4_LostAnswers_Delay(t *testing.T) {
	loseEach(t, lostCase{name: "delay", play: func(l *lossy) (func(context.Context) error, func(error)) {
		topic := "orders." + uuid.NewString()
		var replies []stream.PublishReply
		call := func(ctx context.Context) (err error) {
			e := eventOf("a", "", topic)
			e.In = time.Hour
			replies, err = l.s.Append(ctx, []stream.Publication{e})
			return err
		}
		return call, func(err error) {
			l.surely(err)
			if !replies[0].Delayed || replies[0].Duplicate {
				l.t.Errorf("%+v", replies[0])
			}
			n := 0
			row := l.direct.pg.Work.QueryRow(l.t.Context(), l.direct.pg.SQL(
				"SELECT count(*) FROM pawl.delayed AS d JOIN pawl.topic AS t ON t.id = d.topic WHERE t.name = $1"), topic)
			if err := row.Scan(&n); err != nil || n != 1 {
				l.t.Errorf("%d wait, want 1: %v", n, err)
			}
		}
	}})
}
