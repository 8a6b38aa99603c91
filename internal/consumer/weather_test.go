package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/memory"
)

// Backends fail, members die, subscriptions close, abort and come back, handlers fail, panic and
// drop. In the end every event was done, none is left, and none is dead.
func TestE14_NothingIsLostInAnyWeather(t *testing.T) {
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		for _, ack := range []consumer.AckMode{consumer.OnSuccess, consumer.Manual} {
			t.Run(fmt.Sprintf("%v_%d", mode, ack), func(t *testing.T) {
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				inLab(t, memory.Options{}, func(l *lab) { l.weather(seed, mode, ack) })
			})
		}
	}
}

func (l *lab) weather(seed uint64, mode stream.Mode, ack consumer.AckMode) {
	const total = 300
	dice := rand.New(rand.NewPCG(seed, 3))
	roll := func(n int) int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return dice.IntN(n)
	}
	var calm atomic.Bool
	bad := func(n int) bool { return roll(n) == 0 && !calm.Load() }
	l.faulty.next = func([]stream.Settlement, stream.Want) error {
		takes(time.Duration(roll(3)) * time.Millisecond)
		if bad(15) {
			return errBroken
		}
		return nil
	}
	l.faulty.wait = func() error {
		if bad(30) {
			return errBroken
		}
		return nil
	}
	done := map[string]bool{}
	handler := func(ctx context.Context, m *consumer.Message) error {
		select {
		case <-time.After(time.Duration(roll(20)) * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch {
		case bad(10):
			return errBroken
		case bad(30):
			panic("weather")
		case ack == consumer.Manual && bad(10):
			return nil
		}
		err := m.Ack()
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			done[m.Event.ID] = true
		}
		return err
	}
	start := func(i int) *subscription {
		return l.subscribe(handler, func(c *consumer.Config) {
			c.Membership.Member, c.Membership.Mode, c.Ack, c.Deliveries = fmt.Sprint("m", i), mode, ack, 1_000_000
			c.InFlight, c.Fetch = 1+i*3, 4
			c.Backoff = func(consumer.Failed) time.Duration { return 5 * time.Millisecond }
		})
	}
	subs := []*subscription{start(0), start(1), start(2)}
	stop := func(i int, abort bool) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(roll(30))*time.Millisecond)
		defer cancel()
		end := func() error { return subs[i].Close(ctx) }
		if abort {
			end = subs[i].Abort
		}
		if err := end(); err != nil && !errors.Is(err, job.ErrStopping) && !errors.Is(err, stream.ErrFeedLost) {
			l.Errorf("it ended with %v", err)
		}
		if subs[i].Running() {
			l.Error("it runs after its end")
		}
	}
	for i := range total {
		l.publish("t.a", fmt.Sprintf("%d@k%d", i, roll(25)))
		after(time.Duration(roll(5)) * time.Millisecond)
		switch n := roll(3); roll(25) {
		case 0:
			l.backend.Kill("g", fmt.Sprint("m", n))
		case 1, 2:
			stop(n, roll(2) == 0)
			subs[n] = start(n)
		}
	}
	calm.Store(true)
	after(time.Hour)
	for i, s := range subs {
		st := s.Stats()
		if st.Open != 0 || st.Running != 0 || !s.Running() {
			l.Errorf("subscription %d: %+v", i, st)
		}
		s.close()
	}
	equal(l, "done", len(done), total)
	equal(l, "left", l.left(), map[string]int{})
	equal(l, "parked", len(l.parked()), 0)
}
