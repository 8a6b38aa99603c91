package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/memory"
)

// As many handlers run as are allowed and never one more, redeliveries too; a fetch asks for
// no more than it may and than there are free slots.
func TestE10_InFlightAndFetchAreExact(t *testing.T) {
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		t.Run(mode.String(), func(t *testing.T) {
			inLab(t, memory.Options{}, func(l *lab) {
				const flight, fetch = 5, 3
				var dice = rand.New(rand.NewPCG(7, 7))
				l.faulty.next = func(_ []stream.Settlement, want stream.Want) error {
					l.mu.Lock()
					running := l.now
					l.mu.Unlock()
					if want.N > fetch || want.N > flight-running {
						t.Errorf("%d are asked for while %d run", want.N, running)
					}
					takes(time.Millisecond) // handlers end, and retries become due, meanwhile
					return nil
				}
				s := l.subscribe(func(context.Context, *consumer.Message) error {
					l.mu.Lock()
					d, fails := time.Duration(dice.IntN(20))*time.Millisecond, dice.IntN(4) == 0
					l.mu.Unlock()
					takes(d)
					if fails {
						return errBroken
					}
					return nil
				}, func(c *consumer.Config) {
					c.InFlight, c.Fetch, c.Membership.Mode, c.Deliveries = flight, fetch, mode, 1000
					c.Backoff = func(consumer.Failed) time.Duration { return 10 * time.Millisecond }
				})
				for i, id := range numbers(400) {
					l.publish("t.a", id+"@"+string(rune('a'+i%26)))
				}
				after(time.Hour)
				equal(t, "acked", s.Stats().Acked, 400)
				equal(t, "handlers at once", l.atOnce(), flight)
				s.close()
			})
		})
	}
}

// A slot that a fetch may fill is not given to a retry that becomes due meanwhile.
func TestE10_ASlotIsTakenBeforeItsEventIsFetched(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		var slow atomic.Bool
		l.faulty.next = func(_ []stream.Settlement, want stream.Want) error {
			if slow.Load() && want.N > 0 {
				takes(10 * time.Second) // longer than the backoff
			}
			return nil
		}
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			if m.Event.ID == "fails" {
				return errBroken
			}
			takes(time.Minute)
			return nil
		}, ordered, func(c *consumer.Config) { c.InFlight = 1 })
		l.publish("t.a", "fails@a")
		after(0)
		slow.Store(true)
		l.publish("t.a", "next@b")
		after(30 * time.Second)
		equal(t, "runs", l.ids(), []string{"fails", "fails", "next"})
		equal(t, "at once", l.atOnce(), 1)
		slow.Store(false)
		after(10 * time.Minute)
		s.close()
		equal(t, "at once", l.atOnce(), 1)
	})
}

// An idle subscription settles at once: no time passes. Under load a Next carries many.
func TestE10_AcksAreCoalescedAndWaitForNoTimer(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		s := l.subscribe(func(context.Context, *consumer.Message) error { takes(time.Millisecond); return nil })
		for i, id := range numbers(50) {
			l.publish("t.a", id)
			after(time.Millisecond)
			equal(t, "acked in no time", s.Stats().Acked, uint64(i+1))
		}
		before := s.Stats().Turns
		l.faulty.mu.Lock()
		l.faulty.next = func([]stream.Settlement, stream.Want) error {
			takes(10 * time.Millisecond)
			return nil
		}
		l.faulty.mu.Unlock()
		began := time.Now()
		l.publish("t.a", numbers(1600)...)
		for s.Stats().Acked < 1650 {
			after(10 * time.Millisecond)
		}
		if turns := s.Stats().Turns - before; turns > 250 {
			t.Errorf("1,600 acks of 16 in flight took %d turns", turns)
		}
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("it took %v, with 10 ms for a turn", took)
		}
		s.close()
	})
}

// When nothing happens, nothing is asked.
func TestE10_AnIdleSubscriptionAsksForNothing(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		l.publish("t.a", numbers(20)...)
		s := l.subscribe(fine)
		after(time.Minute)
		before := s.Stats().Turns
		after(24 * time.Hour)
		equal(t, "turns", s.Stats().Turns, before)
		l.publish("t.a", "more")
		after(0)
		equal(t, "acked", s.Stats().Acked, 21)
		s.close()
	})
}

// What is open has a bound, however many keys wait.
func TestE10_WhatIsOpenIsBounded(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		var mended atomic.Bool
		s := l.subscribe(func(context.Context, *consumer.Message) error {
			if !mended.Load() {
				return errBroken
			}
			return nil
		}, ordered, func(c *consumer.Config) { c.InFlight, c.Open, c.Deliveries = 4, 20, 1000 })
		for _, id := range numbers(100) {
			l.publish("t.a", id+"@"+id)
		}
		after(time.Minute)
		st := s.Stats()
		equal(t, "open", st.Open, 20)
		if why := fmt.Sprint(st.Why()); !strings.Contains(why, "nothing is read: 20 events are open") || !strings.Contains(why, "20 failed") {
			t.Errorf("why: %s", why)
		}
		mended.Store(true)
		after(time.Hour)
		equal(t, "acked", s.Stats().Acked, 100)
		s.close()
	})
}
