//go:build soak

package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// TestSoak_E10_TurnsBesideAHeldSnapshot holds a snapshot for a minute while a member takes and acknowledges one event a
// turn. The last of six stretches makes as many turns as the first, less ten per cent.
func TestSoak_E10_TurnsBesideAHeldSnapshot(t *testing.T) {
	const events, stretches, long = 500_000, 6, 10 * time.Second
	db := need.Postgres(t)
	s := openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{LostAfter: time.Hour})
	users := newPool(t, db.URL)
	fillLog(t, s, events)
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		t.Run(mode.String(), func(t *testing.T) {
			p := joinOn(t, feedtest.New(t, s), memberOf("g-"+mode.String(), ">", "m", mode))
			for range 1000 { // caches are warm
				p.next(1, p.all()...)
			}
			tx, err := users.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			if _, err := tx.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
				t.Fatal(err)
			}
			var rates []int
			for range stretches {
				turns := 0
				for began := time.Now(); time.Since(began) < long; turns++ {
					if got := p.next(1, p.all()...); len(got) == 0 {
						t.Fatal("the log is too short")
					}
				}
				rates = append(rates, turns/int(long/time.Second))
			}
			t.Logf("%s: %v turns a second beside a held snapshot", mode, rates)
			if first, last := rates[0], rates[stretches-1]; last*10 < first*9 {
				t.Errorf("%s: %d turns a second at the beginning, %d at the end", mode, first, last)
			}
		})
	}
}

// TestSoak_E10_TurnsThroughAMillionEvents visits as many events at the end as at the beginning.
func TestSoak_E10_TurnsThroughAMillionEvents(t *testing.T) { turnsVisit(t, 1_000_000) }
