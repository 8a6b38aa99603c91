package sqlite_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/stream"
)

// counting counts calls of the store that members make when they wait.
type counting struct {
	feedtest.Grouping
	calls atomic.Int64
}

func (c *counting) Turn(ctx context.Context, t *store.Turn) (store.TurnReply, error) {
	c.calls.Add(1)
	return c.Grouping.Turn(ctx, t)
}

func (c *counting) GroupNews(ctx context.Context, hands []store.Hand) ([]store.HandNews, error) {
	c.calls.Add(1)
	return c.Grouping.GroupNews(ctx, hands)
}

func (c *counting) Head(ctx context.Context) (stream.Position, error) {
	c.calls.Add(1)
	return c.Grouping.Head(ctx)
}

func (c *counting) Events(ctx context.Context, q store.EventQuery) (store.EventPage, error) {
	c.calls.Add(1)
	return c.Grouping.Events(ctx, q)
}

// A thousand topics with ten groups each, of one process, and nothing happens: together they make
// fewer than twenty calls a second.
func TestE10_IdleGroupsOfManyTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const topics, groups = 1000, 10
		opened, err := sqlite.Memory().Open(t.Context(), store.Settings{LostAfter: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		s := &counting{Grouping: opened.(feedtest.Grouping)}
		b := feedtest.New(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for i := range topics {
			match, err := stream.Filter{Topic: fmt.Sprint("t.", i)}.Matcher()
			if err != nil {
				t.Fatal(err)
			}
			for j := range groups {
				f, err := b.Join(ctx, stream.Membership{Group: fmt.Sprint(i, ".", j), Member: "m", Match: match})
				if err != nil {
					t.Fatal(err)
				}
				waiting.Go(func() {
					for ctx.Err() == nil {
						if got, err := f.Next(ctx, nil, stream.Want{N: 1, Idle: true}); err != nil && ctx.Err() == nil || len(got) > 0 {
							t.Errorf("%d events, %v", len(got), err)
							return
						}
						_ = f.Wait(ctx) // with news, or at the end
					}
				})
			}
		}
		time.Sleep(30 * time.Second) // virtual: all have looked
		before := s.calls.Load()
		time.Sleep(time.Minute) // virtual: the time in which calls are counted
		a := float64(s.calls.Load()-before) / 60
		t.Logf("%d topics with %d groups make %.1f calls a second", topics, groups, a)
		if a >= 20 {
			t.Errorf("%d topics with %d groups make %.1f calls a second, want fewer than 20", topics, groups, a)
		}
		cancel()
		waiting.Wait()
		synctest.Wait()
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
}
