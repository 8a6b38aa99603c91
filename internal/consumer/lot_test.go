package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/memory"
)

// lots subscribes with a handler of many.
func (l *lab) lots(size int, h consumer.LotFunc, edit ...func(*consumer.Config)) *subscription {
	l.Helper()
	c := l.config(fine, func(c *consumer.Config) { c.Lot = size })
	c.Handler = h
	for _, f := range edit {
		f(&c)
	}
	return l.start(c)
}

func TestE24_ALotHasAnErrorForEachEvent(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		var sizes []int
		l.publish("t.a", numbers(25)...)
		s := l.lots(10, func(_ context.Context, lot []*consumer.Message) []error {
			l.mu.Lock()
			defer l.mu.Unlock()
			sizes = append(sizes, len(lot))
			errs := make([]error, len(lot))
			for i, m := range lot {
				switch m.Event.ID {
				case "3":
					errs[i] = errBroken
				case "4":
					errs[i] = m.Reject("no")
				case "5":
					m.Ack()
					errs[i] = errBroken
				}
			}
			return errs
		}, func(c *consumer.Config) { c.InFlight = 20 })
		s.close()
		for i, n := range sizes {
			if n > 10 {
				t.Errorf("lot %d has %d events", i, n)
			}
		}
		if len(sizes) > 4 {
			t.Errorf("%d lots: %v", len(sizes), sizes)
		}
		left := l.left()
		equal(t, "failed", left["3"], 1)
		if _, ok := left["5"]; ok || len(left) > 6 {
			t.Errorf("left: %v", left)
		}
		equal(t, "parked", l.parked(), []string{"4 after 1: no"})
	})
}

func TestE24_AnotherNumberOfErrorsFailsTheLot(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		l.publish("t.a", "1", "2", "3")
		two := func(context.Context, []*consumer.Message) []error { return []error{nil, nil} }
		s := l.lots(10, two, func(c *consumer.Config) { c.Deliveries = 1 })
		after(0)
		for _, text := range l.parked() {
			if !strings.Contains(text, "2 errors for 3 events") {
				t.Error(text)
			}
		}
		equal(t, "dead", s.Stats().Dead, 3)
		s.close()
	})
}

// A panic over many is the fault of one: each is tried by itself at once, and only that one
// fails.
func TestE24_APanicCostsOnlyTheEventThatCausedIt(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		l.publish("t.a", numbers(9)...)
		s := l.lots(9, func(_ context.Context, lot []*consumer.Message) []error {
			for _, m := range lot {
				if m.Event.ID == "4" {
					panic("poison")
				}
			}
			return nil
		}, func(c *consumer.Config) { c.Deliveries = 3 })
		after(time.Hour)
		equal(t, "acked", s.Stats().Acked, 8)
		equal(t, "parked", l.parked(), []string{"4 after 3: panic: poison"})
		equal(t, "failures of others", s.Stats().Retried, 2)
		s.close()
	})
}

// In ordered mode a lot has no two events of one key: one might fail, and the other not.
func TestE24_AnOrderedLotHasOneOfEachKey(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		var order []string
		s := l.lots(16, func(_ context.Context, lot []*consumer.Message) []error {
			seen := map[string]bool{}
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, m := range lot {
				if seen[m.Event.Key] {
					t.Errorf("two of %s in a lot", m.Event.Key)
				}
				seen[m.Event.Key] = true
				if m.Event.Key == "a" {
					order = append(order, m.Event.ID)
				}
			}
			return nil
		}, ordered)
		var want []string
		for i := range 30 {
			id := fmt.Sprint(i)
			if i%3 == 0 {
				want = append(want, id)
			}
			l.publish("t.a", id+"@"+string("abc"[i%3]))
		}
		after(time.Minute)
		equal(t, "acked", s.Stats().Acked, 30)
		equal(t, "order", order, want)
		s.close()
	})
}

// Every fault of a config is named at once, and what the backend cannot do is refused before
// anything runs.
func TestE16_AConfigIsRefusedByName(t *testing.T) {
	_, err := consumer.New(consumer.Config{})
	for _, field := range []string{"handler", "backend"} {
		if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name the %s", err, field)
		}
	}
	match, err := stream.Filter{Topic: "t.>"}.Matcher()
	if err != nil {
		t.Fatal(err)
	}
	good := consumer.Config{
		Backend: memory.New(memory.Options{}), Handler: consumer.HandlerFunc(fine),
		Membership: stream.Membership{Group: "g", Match: match, DeadLetter: "dead"},
	}
	if _, err := consumer.New(good); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*consumer.Config){
		"lot":        func(c *consumer.Config) { c.Lot = 17 },
		"in flight":  func(c *consumer.Config) { c.InFlight = -1 },
		"fetch":      func(c *consumer.Config) { c.Fetch = 1 << 20 },
		"deliveries": func(c *consumer.Config) { c.Deliveries = -1 },
		"behind":     func(c *consumer.Config) { c.Behind, c.Membership.Mode = -1, stream.Ordered },
		"behind ":    func(c *consumer.Config) { c.Behind = 5 },
		"backoff": func(c *consumer.Config) {
			c.Ack, c.Backoff, c.Membership.DeadLetter = consumer.OnReceive, consumer.DefaultBackoff, ""
		},
		"open":            func(c *consumer.Config) { c.Open, c.InFlight = 10, 20 },
		"acknowledgement": func(c *consumer.Config) { c.Ack = 9 },
		"grace":           func(c *consumer.Config) { c.Grace = -1 },
		"group":           func(c *consumer.Config) { c.Membership.Group = "" },
		"mode":            func(c *consumer.Config) { c.Backend, c.Membership.Mode = plain{c.Backend}, stream.Ordered },
		"type":            func(c *consumer.Config) { c.Backend, c.Membership.Match.Type = plain{c.Backend}, "order" },
		"start": func(c *consumer.Config) {
			c.Backend, c.Membership.Start = plain{c.Backend}, stream.FromTime(time.Unix(1, 0))
		},
		"dead-letter topic": func(c *consumer.Config) { c.Ack = consumer.OnReceive },
	} {
		c := good
		change(&c)
		if _, err := consumer.New(c); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), strings.TrimSpace(field)) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// plain is a backend that can do little.
type plain struct{ stream.Backend }

func (plain) Features() stream.Features { return stream.Features{} }
