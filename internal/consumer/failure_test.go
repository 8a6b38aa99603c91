package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/memory"
)

func TestE11_RetriesBackOffAndTheLastIsDead(t *testing.T) {
	for mode := range 3 {
		t.Run(stream.Mode(mode).String(), func(t *testing.T) {
			inLab(t, memory.Options{}, func(l *lab) {
				s := l.subscribe(fails, func(c *consumer.Config) {
					c.Deliveries, c.Membership.Mode, c.Membership.DeadLetter = 4, stream.Mode(mode), "dead.t"
				})
				l.publish("t.a", "x")
				after(time.Hour)
				equal(t, "runs", l.runs, []run{{"x", 0, 0}, {"x", 1, time.Second}, {"x", 2, 3 * time.Second}, {"x", 3, 6 * time.Second}})
				events := l.backend.Events()
				letter := events[len(events)-1]
				equal(t, "letter", []string{letter.Topic, letter.Headers[stream.DeadFailures], letter.Headers[stream.DeadReason]},
					[]string{"dead.t", "4", "broken"})
				equal(t, "dead", s.Stats().Dead, 1)
				s.close()
			})
		})
	}
}

func TestE11_OneDeliveryMeansDeadAtTheFirstFailure(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			if m.Event.ID == "asks" {
				return m.Retry("again, please", 0)
			}
			return errBroken
		}, func(c *consumer.Config) { c.Deliveries = 1 })
		l.publish("t.a", "x", "asks")
		after(time.Hour)
		equal(t, "runs", len(l.ids()), 2)
		equal(t, "parked", l.parked(), []string{"asks after 1: again, please", "x after 1: broken"})
		s.close()
	})
}

// What has failed often enough elsewhere is given up without a run.
func TestE11_WhatArrivesUsedUpIsGivenUp(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		l.publish("t.a", "x", "y")
		c := l.config(fine, func(c *consumer.Config) { c.Deliveries = 2 })
		feed, err := l.backend.Join(t.Context(), c.Membership)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, _ := feed.Next(t.Context(), nil, stream.Want{N: 1})
			feed.Next(t.Context(), []stream.Settlement{{Ref: got[0].Ref, Verdict: stream.Retried}}, stream.Want{})
		}
		feed.Leave(t.Context(), nil)
		s := l.start(c)
		after(time.Minute)
		equal(t, "runs", l.ids(), []string{"y"})
		if list := l.parked(); len(list) != 1 || !strings.HasPrefix(list[0], "x after 2: it has failed 2 times") {
			t.Errorf("parked: %q", list)
		}
		s.close()
	})
}

func TestE12_ABadEntryIsDeadWithoutAHandler(t *testing.T) {
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		inLab(t, memory.Options{}, func(l *lab) {
			s := l.subscribe(fine, func(c *consumer.Config) { c.Membership.Mode = mode })
			l.publish("t.a", "1")
			l.backend.PutBad("t.a", "", []byte{255}, errBroken)
			l.publish("t.a", "2")
			after(0)
			equal(t, "runs", l.sorted(), []string{"1", "2"})
			list := l.backend.Parked("g")
			if len(list) != 1 || string(list[0].Event.Data) != "\xff" || list[0].Failures != 0 ||
				list[0].Reason != "it cannot be read: broken" {
				t.Errorf("parked: %+v", list)
			}
			equal(t, "troubles", l.scopes(), []string{"decode"})
			s.close()
		})
	}
}

func TestE4_AnExpiredEventIsAckedWithoutAHandler(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		for _, id := range []string{"soon", "never"} {
			p := stream.Publication{Event: stream.Event{ID: id, Topic: "t.a"}}
			if id == "soon" {
				p.TTL = time.Minute
			}
			if _, err := l.backend.Publish(t.Context(), []stream.Publication{p}); err != nil {
				t.Fatal(err)
			}
		}
		after(time.Minute)
		s := l.subscribe(fine)
		equal(t, "runs", l.ids(), []string{"never"})
		equal(t, "expired, acked", []uint64{s.Stats().Expired, s.Stats().Acked}, []uint64{1, 2})
		s.close()
		equal(t, "left", l.left(), map[string]int{})
	})
}

// An event that expires while it waits behind another is not handled either.
func TestE4_AnEventMayExpireWhileItWaits(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		s := l.subscribe(func(context.Context, *consumer.Message) error { takes(time.Minute); return nil }, ordered)
		l.publish("t.a", "1@a")
		p := stream.Publication{Event: stream.Event{ID: "2", Topic: "t.a", Key: "a"}, TTL: time.Second}
		if _, err := l.backend.Publish(t.Context(), []stream.Publication{p}); err != nil {
			t.Fatal(err)
		}
		after(time.Hour)
		equal(t, "runs", l.ids(), []string{"1"})
		equal(t, "expired", s.Stats().Expired, 1)
		s.close()
	})
}

func TestE13_APanicIsAFailedDelivery(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			switch m.Event.ID {
			case "panics":
				panic("at the disco")
			case "exits":
				runtime.Goexit()
			case "nil":
				var none []int
				return fmt.Errorf("%d", none[len(m.Event.ID)])
			}
			return nil
		}, func(c *consumer.Config) {
			c.Deliveries = 2
			observe := c.Observe
			c.Observe = func(t consumer.Trouble) { observe(t); panic("of the observer") }
			c.Backoff = func(consumer.Failed) time.Duration { panic("of the backoff") }
		})
		l.publish("t.a", "panics", "exits", "nil", "fine")
		after(time.Hour)
		if !s.Running() {
			t.Fatal("it does not run any more")
		}
		parked := strings.Join(l.parked(), "\n")
		for _, want := range []string{
			"panics after 2: panic: at the disco", "exits after 2: the handler ended its goroutine",
			"nil after 2: panic: runtime error: index out of range",
		} {
			if !strings.Contains(parked, want) {
				t.Errorf("%q is not in %q", want, parked)
			}
		}
		equal(t, "acked", s.Stats().Acked, 1)
		equal(t, "panics", s.Stats().Troubles[consumer.Panic], 6)
		for _, trouble := range l.troubles {
			if trouble.Event.ID == "nil" && !strings.Contains(string(trouble.Stack), "failure_test.go") {
				t.Errorf("stack %s", trouble.Stack)
			}
		}
		l.publish("t.a", "later")
		after(0)
		equal(t, "acked", s.Stats().Acked, 2)
		s.close()
	})
}

// While a suspect runs nothing else does, not even what is open here and becomes due.
func TestE11_ASuspectRunsAlone(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			switch {
			case m.Losses >= 2:
				takes(5 * time.Second)
			case m.Failures == 0:
				return errBroken // and is due after a second
			}
			return nil
		}, ordered)
		l.publish("t.a", "rests@a")
		after(0)
		other := l.config(fine, ordered).Membership
		other.Member = "x"
		feed, err := l.backend.Join(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		l.hold(func() { // nobody else fetches meanwhile
			l.publish("t.a", "suspect@b")
			for range 2 {
				if got, err := feed.Next(t.Context(), nil, stream.Want{N: 1}); err != nil || len(got) != 1 {
					t.Fatal(got, err)
				}
				l.backend.Kill("g", "x")
				feed, _ = l.backend.Join(t.Context(), other)
			}
		})
		after(4 * time.Second)
		equal(t, "runs", l.ids(), []string{"rests", "suspect"})
		after(2 * time.Second)
		equal(t, "runs", l.ids(), []string{"rests", "suspect", "rests"})
		equal(t, "at once", l.atOnce(), 1)
		s.close()
	})
}

// Five events end their process: here, they get their member killed while their handler runs.
// They are given up, each after its deliveries, and nobody else; a suspect runs alone.
func TestE11_PoisonThatKillsTakesNoInnocentsAlong(t *testing.T) {
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		t.Run(mode.String(), func(t *testing.T) {
			inLab(t, memory.Options{}, func(l *lab) {
				const total = 600
				done := map[string]bool{}
				s := l.subscribe(func(ctx context.Context, m *consumer.Message) error {
					var n int
					fmt.Sscan(m.Event.ID, &n)
					l.mu.Lock()
					if m.Losses >= 2 && l.now > 1 {
						t.Errorf("%s was lost %d times and runs beside %d others", m.Event.ID, m.Losses, l.now-1)
					}
					l.mu.Unlock()
					if n%120 == 60 {
						takes(5 * time.Millisecond)
						l.backend.Kill("g", "m")
						<-ctx.Done()
						if !errors.Is(context.Cause(ctx), stream.ErrFeedLost) {
							t.Errorf("cancelled by %v", context.Cause(ctx))
						}
						return context.Cause(ctx)
					}
					takes(time.Millisecond)
					l.mu.Lock()
					defer l.mu.Unlock()
					done[m.Event.ID] = true
					return nil
				}, func(c *consumer.Config) { c.Membership.Member, c.Deliveries, c.Membership.Mode = "m", 3, mode })
				for i, id := range numbers(total) {
					l.publish("t.a", fmt.Sprintf("%s@k%d", id, i%40))
				}
				after(10 * time.Hour)
				equal(t, "done", len(done), total-5)
				var dead []string
				for _, p := range l.backend.Parked("g") {
					dead = append(dead, fmt.Sprint(p.Event.ID, "/", p.Failures))
				}
				equal(t, "dead", len(dead), 5)
				for _, id := range dead {
					if done[id] || !strings.HasSuffix(id, "/3") {
						t.Errorf("%s is dead", id)
					}
				}
				equal(t, "open", s.Stats().Open, 0)
				s.close()
			})
		})
	}
}
