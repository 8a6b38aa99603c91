package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/memory"
)

// A member that is lost forgets what it had, tells its handlers, and joins again; what they
// say comes too late, and the events come again.
func TestE14_ALostMemberForgetsAndJoinsAgain(t *testing.T) {
	for mode := range 3 {
		t.Run(stream.Mode(mode).String(), func(t *testing.T) {
			inLab(t, memory.Options{}, func(l *lab) {
				told := 0
				s := l.subscribe(func(ctx context.Context, m *consumer.Message) error {
					if m.Losses > 0 {
						return nil
					}
					<-ctx.Done()
					l.mu.Lock()
					defer l.mu.Unlock()
					if errors.Is(context.Cause(ctx), stream.ErrFeedLost) && errors.Is(m.Ack(), stream.ErrFeedLost) {
						told++
					}
					return nil
				}, func(c *consumer.Config) { c.Membership.Mode, c.InFlight = stream.Mode(mode), 9 })
				for _, id := range numbers(4) {
					l.publish("t.a", id+"@"+id)
				}
				after(time.Second)
				l.backend.Kill("g", s.Member())
				after(0)
				equal(t, "handlers that were told", told, 4)
				equal(t, "joins", s.Stats().Joins, 1)
				after(100 * time.Millisecond)
				equal(t, "joins", s.Stats().Joins, 2)
				equal(t, "lost", s.Stats().Lost, 4)
				equal(t, "acked", s.Stats().Acked, 4)
				equal(t, "running", s.Running(), true)
				equal(t, "scopes", l.scopes(), []string{"reclaim"})
				l.backend.Kill("g", s.Member())
				after(time.Minute)
				s.close()
				if stream.Mode(mode) != stream.FanOut { // whose place went with it
					equal(t, "left", l.left(), map[string]int{})
				}
			})
		})
	}
}

// A member whose handlers are long says so in time; one that says nothing is lost.
func TestE14_LongHandlersAreExtended(t *testing.T) {
	inLab(t, memory.Options{Lease: 30 * time.Second}, func(l *lab) {
		s := l.subscribe(func(ctx context.Context, m *consumer.Message) error {
			if m.Event.ID == "resting" && m.Failures == 0 {
				return errBroken
			}
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return ctx.Err()
		}, ordered, func(c *consumer.Config) {
			c.Backoff = func(consumer.Failed) time.Duration { return 90 * time.Minute }
		})
		l.publish("t.a", "long@a", "resting@b")
		after(3 * time.Hour)
		equal(t, "joins, losses, acks", []uint64{s.Stats().Joins, s.Stats().Lost, s.Stats().Acked}, []uint64{1, 0, 2})
		s.close()
	})
}

// Whoever has all slots taken and no lease of its own learns that it was lost, too.
func TestE14_ABusyMemberLearnsThatItIsLost(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		var cancelled time.Duration
		began := time.Now()
		s := l.subscribe(func(ctx context.Context, m *consumer.Message) error {
			if m.Losses == 0 && m.Event.ID == "0" {
				<-ctx.Done()
				cancelled = time.Since(began)
			}
			return ctx.Err()
		}, func(c *consumer.Config) { c.InFlight = 1 })
		l.publish("t.a", numbers(5)...) // a backlog: there is always news
		after(time.Minute)
		l.backend.Kill("g", s.Member())
		after(10 * time.Second)
		if late := cancelled - time.Minute; late < 0 || late > 5*time.Second {
			t.Errorf("its handler was cancelled after %v", late)
		}
		equal(t, "acked", s.Stats().Acked, 5)
		s.close()
	})
}

// Errors of a backend are told by their scope, and pauses between tries grow from 100 ms to
// 5 s; after some work they begin anew.
func TestE22_ErrorsOfABackendBackOff(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		var tries []time.Time
		var up atomic.Bool
		fault := func() error {
			if up.Load() {
				return nil
			}
			tries = append(tries, time.Now())
			return errBroken
		}
		pauses := func(what string, n int) {
			t.Helper()
			if len(tries) < n+1 {
				t.Fatalf("%s: %d tries", what, len(tries))
			}
			most := 100 * time.Millisecond
			for i := range n {
				if d := tries[i+1].Sub(tries[i]); d < most/2 || d > most {
					t.Errorf("%s: pause %d is %v, of at most %v", what, i, d, most)
				}
				most = min(2*most, 5*time.Second)
			}
			tries = nil
		}
		l.faulty.join = fault
		s := l.subscribe(fine)
		after(time.Minute)
		pauses("join", 10)
		up.Store(true)
		after(10 * time.Second)
		l.publish("t.a", "work")
		after(0)
		l.faulty.mu.Lock()
		l.faulty.next = func([]stream.Settlement, stream.Want) error { return fault() }
		l.faulty.mu.Unlock()
		up.Store(false)
		l.publish("t.a", "more")
		after(time.Minute)
		pauses("next", 10)
		equal(t, "scope", l.scopes()[len(l.scopes())-1], "read")
		up.Store(true)
		after(10 * time.Second)
		equal(t, "acked", s.Stats().Acked, 2)

		// An ack that fails is told as one, kept, and said again.
		l.faulty.mu.Lock()
		l.faulty.next = func(settled []stream.Settlement, _ stream.Want) error {
			if len(settled) > 0 {
				return fault()
			}
			return nil
		}
		l.faulty.mu.Unlock()
		up.Store(false)
		l.publish("t.a", "last")
		after(time.Minute)
		pauses("ack", 10)
		equal(t, "scope", l.scopes()[len(l.scopes())-1], "ack")
		equal(t, "runs", l.ids(), []string{"work", "more", "last"})
		up.Store(true)
		after(10 * time.Second)
		equal(t, "acked", s.Stats().Acked, 3)
		st := s.Stats()
		equal(t, "counted", int(st.Troubles[consumer.Read]+st.Troubles[consumer.Ack]), len(l.troubles))
		s.close()
	})
}

// A Wait that fails is a read that fails, and the subscription goes on.
func TestE22_AWaitThatFails(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		n := 0
		l.faulty.wait = func() error {
			if n++; n%2 == 0 {
				panic("of the backend")
			}
			return errBroken
		}
		s := l.subscribe(fine)
		after(time.Minute)
		if n < 10 || n > 30 {
			t.Errorf("it waited %d times in a minute", n)
		}
		l.publish("t.a", "1")
		after(5 * time.Second)
		equal(t, "runs", l.ids(), []string{"1"})
		equal(t, "read", s.Stats().Troubles[consumer.Read] > 9, true)
		s.close()
	})
}

// Each trouble of a handler is told with its event and counted by its scope.
func TestE22_TroublesHaveAScope(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			if m.Event.ID == "panics" {
				panic("x")
			}
			return fmt.Errorf("%s: %w", m.Event.ID, errBroken)
		}, func(c *consumer.Config) { c.Deliveries, c.InFlight = 1, 1 })
		l.publish("t.a", "fails", "panics")
		l.backend.PutBad("t.a", "", nil, errBroken)
		after(0)
		equal(t, "scopes", fmt.Sprint(l.scopes()), "[handler panic decode]")
		equal(t, "event", l.troubles[0].Event.ID, "fails")
		st := s.Stats()
		equal(t, "counted", fmt.Sprint(st.Troubles), "[0 1 1 0 0 1]")
		s.close()
	})
}
