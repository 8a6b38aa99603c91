package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// A member that comes or leaves in another process is heard of: the others take stripes over, or give some up.
func TestE8_AMemberThatComesElsewhereIsHeard(t *testing.T) {
	db := need.Postgres(t)
	here := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	elsewhere := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{})
	w, err := elsewhere.Register(t.Context(), store.Worker{Label: "w", LostAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- listening{here}.Listen(ctx, func(h store.Hint) {
			if h.Subject == store.SubjectGroup {
				select {
				case heard <- struct{}{}:
				default:
				}
			}
		})
	}()
	again := time.NewTicker(100 * time.Millisecond) // a listener does not say when it has begun to hear
	defer again.Stop()
	for n := 0; ; n++ {
		_, err := elsewhere.JoinGroup(t.Context(), store.GroupJoin{
			Group: "g", Member: fmt.Sprint("m", n), Worker: w, Mode: stream.Ordered, Filter: stream.Filter{Topic: "a"},
		})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-heard:
			cancel()
			<-ended
			return
		case <-again.C:
		}
		if n > 600 {
			t.Fatal("nobody was told of 600 members")
		}
	}
}
