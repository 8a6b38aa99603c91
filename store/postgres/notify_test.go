package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
)

// A connection that broke while it was idle costs a notification its first try,
// not every other process seconds.
func TestJ12_ANotificationSurvivesABrokenConnection(t *testing.T) {
	db := need.Postgres(t)
	s := openOn(t, with(t, db.URL, "application_name", db.Schema), Options{Schema: db.Schema}, store.Settings{})
	other := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := make(chan store.Hint, 10), make(chan error, 1)
	go func() { ended <- listening{other}.Listen(ctx, func(h store.Hint) { heard <- h }) }()
	defer func() {
		cancel()
		<-ended
	}()
	<-heard // it listens
	if _, err := other.users.Exec(ctx, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = $1", db.Schema); err != nil {
		t.Fatal(err)
	}
	s.notifier.look("q")
	select {
	case h := <-heard:
		if h.Queue != "q" {
			t.Errorf("heard of %q", h.Queue)
		}
	case <-time.After(time.Minute):
		t.Error("nobody was told")
	}
}
