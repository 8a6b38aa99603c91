package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// engineOn is an engine on a server.
func engineOn(t *testing.T, address string, cfg pawl.Config) *pawl.Engine {
	t.Helper()
	e, err := pawl.New(Pool(newPool(t, address), Options{}), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// answered repeats a call until the server is there again.
func answered(t *testing.T, call func() error) {
	t.Helper()
	for {
		err := call()
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, pawl.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
	}
}

// A server that crashes may have forgotten numbers that were taken and not used. A reader who
// has seen the head behind them waits for nothing and skips nothing, and one who begins at the
// end does not, either. What an open transaction appended is gone; what a prepared one appended
// holds readers back as before.
func TestE5_ACrashThatForgetsNumbers(t *testing.T) {
	server := need.PostgresServer(t, "max_prepared_transactions=2", "wal_writer_delay=10s", "autovacuum=off", "wal_level=minimal", "max_wal_senders=0")
	s := openOn(t, server.URL(), Options{}, store.Settings{})
	e := engineOn(t, server.URL(), pawl.Config{})
	publish := func(id string) {
		t.Helper()
		answered(t, func() error {
			_, err := e.Publish(t.Context(), "orders", id, pawl.EventID(id))
			return err
		})
	}
	publish("before")
	open := func() pgx.Tx {
		tx, err := newPool(t, server.URL()).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return tx
	}
	in := func(tx pgx.Tx, text string) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	tx := open()
	in(tx, "SAVEPOINT a")
	for range 5 { // more than a server notes ahead
		var drafts []stream.Publication
		for n := range 20 {
			drafts = append(drafts, eventOf(fmt.Sprint("undone ", n), "", "orders"))
		}
		if _, err := s.Within(tx).(store.TxLog).Append(t.Context(), drafts); err != nil {
			t.Fatal(err)
		}
	}
	in(tx, "ROLLBACK TO SAVEPOINT a") // nothing makes the server write that down

	all, behind := stream.Filter{Topic: ">"}, stream.Filter{Topic: "orders"}
	end, err := e.Cursor(t.Context(), "", all, pawl.StartAt(stream.FromEnd()))
	if err != nil {
		t.Fatal(err)
	}
	start, err := e.Cursor(t.Context(), "", behind)
	if err != nil {
		t.Fatal(err)
	}
	poll := func(c *pawl.Cursor) (ids []string) {
		t.Helper()
		answered(t, func() error {
			b, err := c.Poll(t.Context(), 10)
			if err == nil {
				for i := range b.Events {
					ids = append(ids, b.Events[i].ID)
				}
			}
			return err
		})
		return ids
	}
	if got := poll(start); !slices.Equal(got, []string{"before"}) {
		t.Fatalf("%v can be read", got)
	}
	if got := poll(end); got != nil || poll(start) != nil {
		t.Fatalf("%v can be read behind the end", got)
	}
	head, err := s.Head(t.Context())
	if err != nil || head.Seq() < 100 {
		t.Fatalf("the head is %s, %v", head.Debug(), err)
	}
	if err := errors.Join(server.Kill(), server.Start()); err != nil {
		t.Fatal(err)
	}
	var now stream.Position
	answered(t, func() (err error) { now, err = s.Head(t.Context()); return err })
	if order, ok := now.Compare(head); !ok || order >= 0 {
		t.Fatalf("the head is %s and was %s: the server has forgotten nothing, and nothing is shown", now.Debug(), head.Debug())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a bound for what must not happen
	defer cancel()
	publish("after")
	for _, c := range []*pawl.Cursor{end, start} {
		if err := c.Wait(ctx); err != nil {
			t.Fatalf("nobody tells a reader: %v", err)
		}
		if got := poll(c); !slices.Equal(got, []string{"after"}) {
			t.Errorf("%v can be read, want the one after the crash", got)
		}
	}

	tx = open()
	if _, err := s.Within(tx).(store.TxLog).Append(t.Context(), []stream.Publication{eventOf("prepared", "", "orders")}); err != nil {
		t.Fatal(err)
	}
	in(tx, "PREPARE TRANSACTION 'forgotten'")
	publish("behind it")
	named := func() {
		t.Helper()
		answered(t, func() error {
			list, err := s.LogHolders(t.Context())
			if err == nil && (len(list) != 1 || !list[0].Prepared || list[0].Name != "forgotten" || list[0].PID != 0 || list[0].User != "postgres") {
				t.Errorf("readers wait for %+v, want the prepared transaction", list)
			}
			return err
		})
	}
	named()
	if err := errors.Join(server.Abort(), server.Start()); err != nil {
		t.Fatal(err)
	}
	if got := poll(start); got != nil {
		t.Errorf("%v can be read before a prepared transaction has ended", got)
	}
	named()
	answered(t, func() error {
		_, err := newPool(t, server.URL()).Exec(t.Context(), "COMMIT PREPARED 'forgotten'")
		return err
	})
	if got := poll(start); !slices.Equal(got, []string{"prepared", "behind it"}) {
		t.Errorf("%v can be read", got)
	}
}

// An event that was read is on disk, whatever its transaction thinks of that: its number would
// be another one's after a crash.
func TestE5_WhatIsReadIsOnDisk(t *testing.T) {
	s := openInternal(t)
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for i, text := range []string{"SET LOCAL synchronous_commit = off", "SAVEPOINT a", "", "ROLLBACK TO SAVEPOINT a", "", ""} {
		if text != "" {
			_, err = tx.Exec(t.Context(), text)
		} else {
			_, err = s.Within(tx).(store.TxLog).Append(t.Context(), []stream.Publication{eventOf(fmt.Sprint(i), "", "orders")})
		}
		var durable string
		if err = errors.Join(err, tx.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&durable)); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{true: "on", false: "off"}[text == ""]; durable != want {
			t.Errorf("%d %q: synchronous_commit is %s, want %s", i, text, durable, want)
		}
	}
}

// A standby that is promoted without the last events of its primary goes on in another epoch,
// under processes that go on, too: what they know of the lost events is refused, topics that
// were made with them are made again, and workers read on.
func TestE6_APromotionThatLostTheLastEvents(t *testing.T) {
	primary := need.PostgresServer(t)
	standby := need.PostgresStandby(t, primary.Port())
	address := fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write",
		primary.Port(), standby.Port())
	var log said
	s := openOn(t, address, Options{}, store.Settings{Logger: log.logger()})
	at := put(t, s, "orders", "a", "b")
	m := cursorAt(t, s, "c", at[0])

	e := engineOn(t, address, pawl.Config{Logger: log.logger()})
	handled := make(chan string, 100)
	pawl.HandleCursor(e, "worker", stream.Filter{}, func(_ context.Context, b *pawl.EventBatch) error {
		for i := range b.Events {
			handled <- b.Events[i].ID
		}
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	running := make(chan error, 1)
	go func() { running <- e.Run(ctx) }()
	defer func() {
		stop()
		if err := <-running; err != nil {
			t.Error(err)
		}
	}()
	await := func(id string) {
		t.Helper()
		for {
			select {
			case got := <-handled:
				if got == id {
					return
				}
			case <-time.After(time.Minute): // a bound for what must not happen
				t.Fatalf("the worker does not come to %s", id)
			}
		}
	}
	await("b")

	// From here on the standby misses everything.
	of := func(address string) *pgx.Conn {
		c, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	until := func(c *pgx.Conn, text string, args ...any) {
		t.Helper()
		for done := false; !done; {
			if err := c.QueryRow(t.Context(), text, args...).Scan(&done); err != nil {
				t.Fatal(err)
			}
		}
	}
	second := of(standby.URL())
	var lsn string
	if err := of(primary.URL()).QueryRow(t.Context(), "SELECT pg_current_wal_lsn()::text").Scan(&lsn); err != nil {
		t.Fatal(err)
	}
	until(second, "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", lsn)
	for _, text := range []string{"ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"} {
		if _, err := second.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	until(second, "SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
	lost := put(t, s, "lost", "lost", "lost too")
	await("lost too")
	if err := errors.Join(primary.Kill(), standby.Promote()); err != nil {
		t.Fatal(err)
	}

	m.To = lost[1] // the first that the new server hears of the log
	answered(t, func() error {
		_, err := s.MoveCursor(t.Context(), m)
		if errors.Is(err, store.ErrPosition) {
			return nil
		}
		return errors.Join(err, errors.New("it is not refused"))
	})
	goesOn(t, s, m, append(at, lost...), "b")
	put(t, s, "lost", "found") // a topic that was lost with its number
	page, err := s.Events(t.Context(), store.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range page.Events {
		got = append(got, e.Topic+" "+e.ID)
	}
	if want := []string{"orders a", "orders b", "orders new", "lost found"}; !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	await("found")
	if log.times("the event log goes on in another epoch") == 0 || log.times("a cursor goes on in another epoch") == 0 {
		t.Error("nobody says so")
	}
}
