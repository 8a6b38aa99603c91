package keeper_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// timed is a store that notes when it is asked.
type timed struct {
	store.Upkeep
	mu    sync.Mutex
	asked map[time.Duration][]time.Time // by the period of the round
}

func (c *timed) note(period time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[period] = append(c.asked[period], time.Now())
}

func (c *timed) Due(ctx context.Context) (store.Due, error) {
	c.note(5 * time.Second)
	return c.Upkeep.Due(ctx)
}

func (c *timed) MarkLost(ctx context.Context, l store.MarkLostRequest) (store.MarkLostReply, error) {
	c.note(1500 * time.Millisecond)
	return c.Upkeep.MarkLost(ctx, l)
}

// Where the store keeps a rhythm, each round comes at its moments, whenever the
// keeper was started, and no later than without.
func TestF12_RoundsKeepTheRhythm(t *testing.T) {
	inHouse(t, func(h *house) {
		start := time.Now()
		time.Sleep(777 * time.Millisecond) // stimulus: it is started at some other moment
		c := &timed{Upkeep: h.store, asked: map[time.Duration][]time.Time{}}
		k, err := keeper.New(keeper.Config{
			Store: c, Hub: h.hub, Logger: slog.New(slog.DiscardHandler), Steady: h.steadily, Rhythm: store.NewRhythm(start),
		})
		if err != nil {
			t.Fatal(err)
		}
		tree, err := supervise.New(supervise.Config{Services: []supervise.Service{k.Service()}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Start(h.t.Context()); err != nil {
			t.Fatal(err)
		}
		h.live(50 * time.Second) // the rounds of a minute begin at random within it
		if stuck := tree.Stop(h.t.Context()); stuck != nil {
			t.Error(stuck)
		}
		for period, times := range c.asked {
			if len(times) < int(50*time.Second/period)-2 {
				t.Errorf("every %v: asked %d times within 50 s", period, len(times))
			}
			off := 0
			for _, at := range times {
				if at.Sub(start)%period != 0 {
					off++
				}
			}
			if off > 2 { // the first of each round
				t.Errorf("every %v: asked %d times beside the rhythm, of %d", period, off, len(times))
			}
		}
	})
}
