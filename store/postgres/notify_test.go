package postgres

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
)

// overhear listens as another process does. What it returns demands that a queue
// is told of next.
func overhear(t *testing.T, s *Store) func(queue string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := make(chan store.Hint, 10), make(chan error, 1)
	go func() { ended <- listening{s}.Listen(ctx, func(h store.Hint) { heard <- h }) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	<-heard // it listens
	return func(queue string) {
		t.Helper()
		select {
		case h := <-heard:
			if h.Subject != store.SubjectQueue || h.Name != queue {
				t.Errorf("heard of %+v, want queue %q", h, queue)
			}
		case <-time.After(time.Minute):
			t.Error("nobody was told")
		}
	}
}

// A connection that broke while it was idle costs a notification its first try,
// not every other process seconds.
func TestJ12_ANotificationSurvivesABrokenConnection(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, with(t, db.URL, "application_name", db.Schema), Options{Schema: db.Schema}, store.Settings{})
	other := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	heard := overhear(t, other)
	if _, err := other.pg.Users.Exec(t.Context(), "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = $1", db.Schema); err != nil {
		t.Fatal(err)
	}
	s.hints.Notifier.Look("q")
	heard("q")
}

// Transactions that notify commit one after the other, those of every database of
// the server. A message waits behind slow ones, and is not given up.
func TestJ12_ANotificationWaitsBehindSlowCommits(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	other := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	heard := overhear(t, other)
	ctx := t.Context()

	const slow = 10 // each commit takes a tenth of a second
	address := with(t, db.URL, "application_name", db.Schema[len(db.Schema)-16:], "commit_delay", "100000", "commit_siblings", "0")
	execute := func(c *pgx.Conn, text string) {
		if _, err := c.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Error(err)
		}
	}
	var committing sync.WaitGroup
	for n := range slow {
		c, err := pgx.Connect(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.WithoutCancel(ctx))
		if n == 0 {
			execute(c, "CREATE TABLE slow (n integer)")
		}
		execute(c, "BEGIN; INSERT INTO slow VALUES (1); NOTIFY slow")
		committing.Go(func() { execute(c, "COMMIT") })
	}
	for waiting := 0; waiting < slow-3; { // or all of them are through, which proves nothing and fails nothing
		err := other.pg.Users.QueryRow(ctx, "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock') + $2 * (count(*) FILTER (WHERE state = 'active') = 0)::int FROM pg_stat_activity WHERE application_name = $1",
			db.Schema[len(db.Schema)-16:], slow).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	s.hints.Notifier.Look("q")
	heard("q")
	committing.Wait()
}
