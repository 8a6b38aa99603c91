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

// Three members with failing handlers, one of them killed now and then: of a key one event
// runs at a time, and none is handled before those before it are done.
func TestE8_OrderedByKeyWithFailuresAndLosses(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	inLab(t, memory.Options{}, func(l *lab) {
		const keys, each = 7, 30
		dice := rand.New(rand.NewPCG(seed, 2))
		type call struct{ id, member string }
		done, runs := map[string]int{}, map[string]*call{} // by key; only of members that live
		untold := map[string]bool{}                        // members that are dead, and go on until they hear of it
		var subs []*subscription
		for i := range 3 {
			subs = append(subs, l.subscribe(func(ctx context.Context, m *consumer.Message) error {
				key := m.Event.Key
				var n int
				fmt.Sscanf(m.Event.ID, key+"-%d", &n)
				l.mu.Lock()
				mine := &call{m.Event.ID, fmt.Sprint("m", i)}
				if !untold[mine.member] && ctx.Err() == nil {
					if other := runs[key]; other != nil {
						t.Errorf("%s runs while %s does", m.Event.ID, other.id)
					}
					runs[key] = mine
					if n > done[key]+1 {
						t.Errorf("%s is handled when %d is done", m.Event.ID, done[key])
					}
				}
				d, fails := time.Duration(dice.IntN(9))*time.Millisecond, dice.IntN(4) == 0
				l.mu.Unlock()
				var err error
				select {
				case <-time.After(d):
				case <-ctx.Done():
					err = context.Cause(ctx)
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				if err == nil && fails {
					err = errBroken
				}
				if runs[key] == mine {
					runs[key] = nil
					if err == nil {
						done[key] = max(done[key], n)
					}
				}
				return err
			}, ordered, func(c *consumer.Config) {
				c.Membership.Member, c.InFlight, c.Deliveries = fmt.Sprint("m", i), 4, 1000
				c.Backoff = func(consumer.Failed) time.Duration { return time.Millisecond }
				observe := c.Observe
				c.Observe = func(trouble consumer.Trouble) {
					if trouble.Scope == consumer.Reclaim {
						l.mu.Lock()
						delete(untold, c.Membership.Member)
						l.mu.Unlock()
					}
					observe(trouble)
				}
			}))
		}
		for n := range each {
			for k := range keys {
				l.publish("t.a", fmt.Sprintf("k%d-%d@k%d", k, n+1, k))
			}
			after(time.Millisecond)
			if n%10 == 9 {
				l.mu.Lock()
				dies := fmt.Sprint("m", dice.IntN(3))
				for key, c := range runs {
					if c != nil && c.member == dies { // its handlers may go on for a while
						runs[key] = nil
					}
				}
				if l.backend.Kill("g", dies) {
					untold[dies] = true
				}
				l.mu.Unlock()
			}
		}
		after(time.Hour)
		for k := range keys {
			equal(t, fmt.Sprint("key ", k), done[fmt.Sprint("k", k)], each)
		}
		for _, s := range subs {
			s.close()
		}
		equal(t, "left", l.left(), map[string]int{})
	})
}

func TestE8_AFailedEventKeepsThoseBehindIt(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		tries := 0
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			if m.Event.ID == "a1" {
				if tries++; tries < 4 {
					return errBroken
				}
			}
			return nil
		}, ordered)
		l.publish("t.a", "a1@a", "a2@a", "b1@b", "a3@a")
		after(0)
		equal(t, "at first", l.sorted(), []string{"a1", "b1"})
		st := s.Stats()
		equal(t, "resting, waiting", []int{st.Resting, st.Waiting, st.Running}, []int{1, 2, 0})
		after(time.Minute)
		equal(t, "in the end", l.ids()[2:], []string{"a1", "a1", "a1", "a2", "a3"})
		for i, want := range []time.Duration{0, 0, 1, 3, 6, 6, 6} {
			equal(t, fmt.Sprint("time of run ", i), l.runs[i].at, want*time.Second)
		}
		equal(t, "failures of the last try", l.runs[4].failures, 3)
		s.close()
	})
}

// Too many behind one key, and its stripe is not fetched; other stripes are, and Stats says why.
func TestE8_TooManyBehindAKeyStopItsStripe(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		stripe := stream.Stripe("t.a", "stuck")
		var mended atomic.Bool
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			if !mended.Load() && m.Event.Key == "stuck" {
				return errBroken
			}
			return nil
		}, ordered, func(c *consumer.Config) { c.Behind, c.InFlight, c.Deliveries = 5, 2, 1000 })
		for _, id := range numbers(100) {
			l.publish("t.a", id+"@stuck")
		}
		after(0)
		open := s.Stats().Open
		if open < 7 || open > 8 {
			t.Errorf("%d are open", open)
		}
		others := 0
		for i := range 20 {
			if key := fmt.Sprint("free", i); stream.Stripe("t.a", key) != stripe {
				l.publish("t.a", fmt.Sprintf("x%d@%s", i, key))
				others++
			}
		}
		after(0)
		equal(t, "acked", s.Stats().Acked, uint64(others))
		equal(t, "open", s.Stats().Open, open)
		l.faulty.mu.Lock()
		last := l.faulty.wants[len(l.faulty.wants)-1]
		l.faulty.mu.Unlock()
		equal(t, "not wanted", last.Not, []int16{stripe})
		st := s.Stats()
		why := fmt.Sprint(st.Why())
		for _, part := range []string{
			fmt.Sprintf("stripe %d is not read", stripe), fmt.Sprintf("%d events of key \"stuck\" of t.a", open-1), "failed 1 times", "tried again at",
		} {
			if !strings.Contains(why, part) {
				t.Errorf("%q does not say %q", why, part)
			}
		}
		mended.Store(true)
		after(time.Hour)
		equal(t, "acked", s.Stats().Acked, uint64(others+100))
		equal(t, "blocked", len(s.Stats().Blocked), 0)
		s.close()
	})
}

// The next event of a key does not wait for a slow Next.
func TestE8_AHotKeyDoesNotWaitForTheBackend(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		l.faulty.next = func(settled []stream.Settlement, _ stream.Want) error {
			if len(settled) > 0 {
				takes(time.Second)
			}
			return nil
		}
		var ids []string
		for _, id := range numbers(16) {
			ids = append(ids, id+"@hot")
		}
		l.publish("t.a", ids...)
		s := l.subscribe(fine, ordered)
		equal(t, "handled before the first ack is stored", len(l.ids()), 16)
		after(time.Minute)
		s.close()
	})
}

// Competing, a hot key whose handlers are slow holds nobody up: not the other keys of its stripe.
func TestE8_AHotKeyHoldsUpNobodyWhoCompetes(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		neighbour := ""
		for i := 0; neighbour == ""; i++ {
			if key := fmt.Sprint("k", i); stream.Stripe("t.a", key) == stream.Stripe("t.a", "hot") {
				neighbour = key
			}
		}
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			if m.Event.Key == "hot" {
				takes(time.Second)
			}
			return nil
		}, func(c *consumer.Config) { c.InFlight = 11 })
		for i := range 10 {
			l.publish("t.a", fmt.Sprintf("h%d@hot", i))
		}
		for i := range 20 {
			l.publish("t.a", fmt.Sprintf("n%d@%s", i, neighbour))
		}
		after(900 * time.Millisecond)
		equal(t, "acked neighbours", s.Stats().Acked, 20)
		after(time.Minute)
		equal(t, "acked", s.Stats().Acked, 30)
		s.close()
	})
}

// A handler that ignores that its member was lost keeps its key: the event comes again, and
// waits for it.
func TestE8_AHandlerOfALostMemberKeepsItsKey(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			if m.Losses == 0 && m.Event.ID == "1" {
				takes(time.Hour)
			}
			return nil
		}, ordered, func(c *consumer.Config) { c.Membership.Member = "m" })
		l.publish("t.a", "1@a", "2@a", "3@b")
		after(0)
		l.backend.Kill("g", "m")
		after(10 * time.Minute)
		equal(t, "runs", l.sorted(), []string{"1", "3"})
		after(time.Hour)
		equal(t, "runs", l.ids()[2:], []string{"1", "2"})
		s.close()
	})
}
