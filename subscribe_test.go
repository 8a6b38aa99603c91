package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/stream"
)

// billing subscribes and notes which orders it has seen.
func billing(seen *tally, opts ...pawl.SubscribeOption) func(*pawl.Engine) {
	return func(e *pawl.Engine) {
		pawl.Subscribe(e, "billing", "orders.*", func(_ context.Context, m *pawl.Message[Placed]) error {
			seen.add(m.Data.Order)
			return nil
		}, opts...)
	}
}

func TestE8_MembersOfTwoProcessesShare(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var first, second tally
		a := at.work(pawl.Config{}, billing(&first, pawl.InFlight(2), pawl.Fetch(2)))
		at.work(pawl.Config{}, billing(&second, pawl.InFlight(2), pawl.Fetch(2)))
		a.place(0, 200)
		pass(5 * time.Second)
		got := append(first.seen(), second.seen()...)
		slices.Sort(got)
		if !slices.Equal(got, upTo(0, 200)) {
			t.Errorf("seen %v", got)
		}
		info, err := a.Group("billing").Info(t.Context())
		a.must(err)
		if info.Members != 2 || info.Behind != 0 || info.Open != 0 {
			t.Errorf("%+v", info)
		}
	})
}

// A typed subscriber on a pattern gets only its type; a raw one gets all.
func TestE8_ATypeOfSeveral(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var typed tally
		var raw []string
		a := at.work(pawl.Config{}, func(e *pawl.Engine) {
			billing(&typed)(e)
			pawl.Subscribe(e, "audit", ">", func(_ context.Context, m *pawl.Message[pawl.Raw]) error {
				raw = append(raw, m.Topic+" "+m.Type+" "+string(m.Data))
				return nil
			}, pawl.InFlight(1))
		})
		a.place(7, 1)
		_, err := a.Publish(t.Context(), "orders.paid", struct{ Paid bool }{true}, pawl.EventType("Paid"))
		a.must(err)
		pass(3 * time.Second)
		if got := typed.seen(); !slices.Equal(got, []int{7}) {
			t.Errorf("typed: %v", got)
		}
		if want := []string{`orders.placed Placed {"Order":7}`, `orders.paid Paid {"Paid":true}`}; !slices.Equal(raw, want) {
			t.Errorf("raw: %q", raw)
		}
	})
}

// What fails comes again, later each time, then goes to its topic, with everything about it,
// and can be replayed to this group alone.
func TestE11_DeadLettersAreReplayed(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var broken atomic.Bool
		broken.Store(true)
		var tries, done, others tally
		a := at.work(pawl.Config{}, func(e *pawl.Engine) {
			pawl.Subscribe(e, "billing", "orders.*", func(_ context.Context, m *pawl.Message[Placed]) error {
				if broken.Load() && m.Data.Order == 3 {
					tries.add(m.Failures)
					return errors.New("no such account")
				}
				done.add(m.Data.Order)
				return nil
			}, pawl.Deliveries(3), pawl.DeadLetter("dead.orders"), pawl.Backoff(pawl.Constant(time.Second)))
			pawl.Subscribe(e, "other", "orders.*", func(_ context.Context, m *pawl.Message[Placed]) error {
				others.add(m.Data.Order)
				return nil
			})
		})
		a.place(0, 5)
		pass(10 * time.Second)
		if got := tries.seen(); !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("tried with %v failures", got)
		}
		var letters []stream.Event
		for ev, err := range a.Events(t.Context(), stream.Filter{Topic: "dead.*"}, stream.FromStart()) {
			a.must(err)
			letters = append(letters, ev)
		}
		if len(letters) != 1 || letters[0].Headers[stream.DeadReason] != "no such account" || letters[0].Headers[stream.DeadFailures] != "3" {
			t.Fatalf("letters: %+v", letters)
		}
		broken.Store(false)
		reply, err := a.Group("billing").ReplayLetters(t.Context(), letters...)
		a.must(err)
		pass(3 * time.Second)
		if got := done.seen(); reply.Replayed != 1 || len(got) != 5 || got[4] != 3 {
			t.Errorf("%+v, done %v", reply, got)
		}
		if got := others.seen(); len(got) != 5 {
			t.Errorf("the other group has seen %v", got)
		}
		if _, err := a.Group("other").ReplayLetters(t.Context(), letters...); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("a letter of another group: %v", err)
		}
	})
}

func TestE11_WithoutATopicItIsParked(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var broken atomic.Bool
		broken.Store(true)
		var done tally
		a := at.work(pawl.Config{}, func(e *pawl.Engine) {
			pawl.Subscribe(e, "billing", "orders.*", func(_ context.Context, m *pawl.Message[Placed]) error {
				if broken.Load() {
					return m.Reject("not today")
				}
				done.add(m.Data.Order)
				return nil
			})
		})
		a.place(0, 3)
		_, err := a.Publish(t.Context(), "orders.placed", pawl.Raw("no JSON"), pawl.EventType("Placed"))
		a.must(err)
		pass(3 * time.Second)
		parked, err := a.Group("billing").Parked(t.Context(), pawl.ParkedAfter{}, 10)
		a.must(err)
		if len(parked) != 4 || parked[0].Reason != "not today" || string(parked[3].Event.Data) != "no JSON" ||
			!strings.Contains(parked[3].Reason, "cannot be decoded") {
			t.Fatalf("%+v", parked)
		}
		broken.Store(false)
		reply, err := a.Group("billing").Replay(t.Context())
		a.must(err)
		pass(3 * time.Second)
		got := done.seen()
		slices.Sort(got)
		if info, err := a.Group("billing").Info(t.Context()); reply.Replayed != 4 || !slices.Equal(got, upTo(0, 3)) || err != nil || info.Parked != 1 {
			t.Errorf("%+v, done %v, %+v, %v", reply, got, info, err)
		}
	})
}

// An effect and its acknowledgement are there together: after an error, a rollback and a
// takeover each effect is there once.
func TestE28_AckWithItsEffect(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		tries := map[int]int{}
		work := func(e *pawl.Engine) {
			pawl.Subscribe(e, "billing", "orders.*", func(ctx context.Context, m *pawl.Message[Placed]) error {
				tries[m.Data.Order]++
				err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
					if _, err := tx.Publish(ctx, "done", m.Data); err != nil {
						return err
					}
					if err := tx.Ack(m); err != nil {
						return err
					}
					if tries[m.Data.Order] == 1 && m.Data.Order%3 == 0 {
						return errors.New("rolled back")
					}
					return nil
				})
				if m.Data.Order%5 == 0 {
					return errors.New("an error after the commit changes nothing")
				}
				return err
			}, pawl.Backoff(pawl.Constant(100*time.Millisecond)), pawl.InFlight(1))
		}
		a := at.work(pawl.Config{}, work)
		a.place(0, 30)
		pass(10 * time.Second)
		var done []int
		for ev, err := range a.Events(t.Context(), stream.Filter{Topic: "done"}, stream.FromStart()) {
			a.must(err)
			done = append(done, a.orders([]stream.Event{ev})...)
		}
		slices.Sort(done)
		if !slices.Equal(done, upTo(0, 30)) {
			t.Errorf("effects: %v", done)
		}
		if info, err := a.Group("billing").Info(t.Context()); err != nil || info.Open+info.Waiting+info.Parked != 0 {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

// A member that is cut off is lost with its worker's lease; what it had goes to others, and
// what it says of it, also in a transaction, is too late.
func TestE14_ALostWorkersEvents(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var effects tally
		hold := make(chan struct{})
		var late atomic.Pointer[error]
		work := func(slow bool) func(*pawl.Engine) {
			return func(e *pawl.Engine) {
				pawl.Subscribe(e, "billing", "orders.*", func(ctx context.Context, m *pawl.Message[Placed]) error {
					if slow {
						<-hold
					}
					err := e.Tx(context.WithoutCancel(ctx), func(ctx context.Context, tx *pawl.Tx) error { return tx.Ack(m) })
					if err == nil {
						effects.add(m.Data.Order)
					} else if slow {
						late.Store(&err)
					}
					return err
				}, pawl.InFlight(4))
			}
		}
		a := at.work(pawl.Config{LostAfter: 20 * time.Second}, work(true))
		a.place(0, 4)
		soon()
		b := at.work(pawl.Config{LostAfter: 20 * time.Second}, work(false))
		pass(2 * time.Second)
		if got := effects.seen(); len(got) != 0 {
			t.Errorf("before: %v", got)
		}
		a.way.cutOff.Store(true)
		a.way.silent.Store(true)
		pass(60 * time.Second)
		got := effects.seen()
		slices.Sort(got)
		if !slices.Equal(got, upTo(0, 4)) {
			t.Errorf("taken over: %v", got)
		}
		close(hold)
		soon()
		if err := late.Load(); err == nil || !errors.Is(*err, stream.ErrFeedLost) {
			t.Errorf("an acknowledgement of the lost one: %v", err)
		}
		if got := effects.seen(); len(got) != 4 {
			t.Errorf("afterwards: %v", got)
		}
		a.way.cutOff.Store(false)
		a.way.silent.Store(false)
		b.place(4, 20)
		pass(20 * time.Second)
		if got := effects.seen(); len(got) != 24 {
			t.Errorf("when it is back: %v", got)
		}
	})
}

func TestE15_RunWaitsForHandlers(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var begun, over atomic.Int64
		var sub *pawl.Subscription
		a := at.work(pawl.Config{}, func(e *pawl.Engine) {
			sub = pawl.Subscribe(e, "billing", "orders.*", func(ctx context.Context, _ *pawl.Message[Placed]) error {
				begun.Add(1)
				time.Sleep(900 * time.Millisecond) // virtual: less than the grace
				if ctx.Err() == nil {
					over.Add(1)
				}
				return nil
			}, pawl.InFlight(3))
		})
		a.place(0, 10)
		soon()
		if !sub.Running() {
			t.Error("it does not run")
		}
		a.leave()
		started, ended := int(begun.Load()), int(over.Load())
		if started < 3 || started%3 != 0 || ended != started || sub.Running() {
			t.Errorf("%d started, %d ended, running %v", started, ended, sub.Running())
		}
		var rest tally
		b := at.work(pawl.Config{}, billing(&rest))
		pass(2 * time.Second)
		if got := rest.seen(); len(got) != 10-started {
			t.Errorf("left for others: %v", got)
		}
		info, err := b.Group("billing").Info(t.Context())
		b.must(err)
		if info.Members != 1 {
			t.Errorf("%+v", info)
		}
	})
}

func TestE15_CloseOfOne(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var one, two tally
		var sub *pawl.Subscription
		a := at.work(pawl.Config{}, func(e *pawl.Engine) {
			sub = pawl.Subscribe(e, "one", "orders.*", func(_ context.Context, m *pawl.Message[Placed]) error {
				one.add(m.Data.Order)
				return nil
			})
			billing(&two)(e)
		})
		a.place(0, 3)
		pass(2 * time.Second)
		a.must(sub.Close(t.Context()))
		a.place(3, 3)
		pass(2 * time.Second)
		if len(one.seen()) != 3 || len(two.seen()) != 6 || sub.Running() {
			t.Errorf("closed: %v, the other: %v", one.seen(), two.seen())
		}
	})
}

func TestE27_WaitForAGroup(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var seen tally
		fails := 2
		a := at.work(pawl.Config{}, func(e *pawl.Engine) {
			pawl.Subscribe(e, "billing", "orders.*", func(_ context.Context, m *pawl.Message[Placed]) error {
				if fails--; fails >= 0 {
					return errors.New("not yet")
				}
				time.Sleep(time.Second) // virtual: the work
				seen.add(m.Data.Order)
				return nil
			}, pawl.Backoff(pawl.Constant(3*time.Second)))
		})
		last := a.place(0, 1)[0]
		a.must(a.WaitFor(t.Context(), "billing", last.Position))
		if got := seen.seen(); !slices.Equal(got, []int{0}) {
			t.Errorf("passed, and seen is %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.WaitFor(ctx, "nobody", last.Position); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("a name that is none: %v", err)
		}
	})
}

func TestE24_BatchesOfEvents(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var done tally
		var sizes tally
		a := at.settle(pawl.Config{})
		a.place(0, 60)
		a.leave()
		at.work(pawl.Config{}, func(e *pawl.Engine) {
			pawl.SubscribeBatch(e, "billing", "orders.*", func(_ context.Context, ms []*pawl.Message[Placed]) []error {
				sizes.add(len(ms))
				errs := make([]error, len(ms))
				for i, m := range ms {
					if m.Data.Order%2 != ms[0].Data.Order%2 {
						t.Errorf("%d and %d share a call", ms[0].Data.Order, m.Data.Order)
					}
					if m.Failures == 0 && m.Data.Order == 7 {
						errs[i] = errors.New("once more")
						continue
					}
					if m.Data.Order == 9 && len(ms) > 1 {
						panic("not with others")
					}
					done.add(m.Data.Order)
				}
				return errs
			}, pawl.Batch[Placed]{Size: 20, Key: func(p Placed) string { return fmt.Sprint(p.Order % 2) }})
		})
		pass(5 * time.Second)
		got := done.seen()
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, upTo(0, 60)) || slices.Max(sizes.seen()) < 5 {
			t.Errorf("done %v in calls of %v", got, sizes.seen())
		}
	})
}

// What cannot be had is refused by name, all of it at once, before anything runs.
func TestE16_WhatRunRefuses(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		a := at.settle(pawl.Config{})
		pawl.Subscribe[Placed](a.Engine, "", "orders..x", nil, pawl.InFlight(0), pawl.Deliveries(-1), pawl.MaxBehind(3), nil)
		pawl.SubscribeBatch(a.Engine, "g", "orders.*", func(context.Context, []*pawl.Message[Placed]) []error { return nil },
			pawl.Batch[Placed]{Size: 10, Wait: time.Second})
		pawl.Subscribe(a.Engine, "letters", "orders.*", func(context.Context, *pawl.Message[Placed]) error { return nil }, pawl.DeadLetter("orders.dead"))
		err := a.Run(t.Context())
		for _, field := range []string{"group", "Filter.Topic", "in flight", "deliveries", "handler", "option", "batch wait", "dead-letter topic"} {
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%v does not name the %s", err, field)
			}
		}
	})
}

// A group keeps what it was made with: who wants another mode is refused, and Run says so.
func TestE16_AnotherModeEndsTheSubscription(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var seen tally
		at.work(pawl.Config{}, billing(&seen))
		b := at.settle(pawl.Config{})
		sub := pawl.Subscribe(b.Engine, "billing", "orders.*", func(context.Context, *pawl.Message[Placed]) error { return nil }, pawl.Ordered())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		pass(2 * time.Second)
		if sub.Running() {
			t.Error("it runs")
		}
		cancel()
		if err := <-ended; !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "mode") {
			t.Errorf("run: %v", err)
		}
	})
}

// A group that is paused takes nothing, in no process, and goes on when it is resumed; one that
// is sought begins anew there.
func TestE8_PauseAndSeek(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var seen tally
		a := at.work(pawl.Config{}, billing(&seen))
		b := at.settle(pawl.Config{})
		ctx := pawl.As(t.Context(), "ann", "")
		replies := a.place(0, 5)
		pass(2 * time.Second)
		b.must(b.Group("billing").Pause(ctx))
		pass(2 * time.Second)
		a.place(5, 5)
		pass(10 * time.Second)
		if got := seen.seen(); len(got) != 5 {
			t.Errorf("paused: %v", got)
		}
		b.must(b.Group("billing").Resume(ctx))
		pass(10 * time.Second)
		if got := seen.seen(); len(got) != 10 {
			t.Errorf("resumed: %v", got)
		}
		b.must(b.Group("billing").Seek(ctx, stream.FromPosition(replies[2].Position)))
		pass(20 * time.Second)
		got := seen.seen()
		slices.Sort(got)
		if want := []int{0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9}; !slices.Equal(got, want) {
			t.Errorf("sought: %v", got)
		}
	})
}

// An idle group asks for nothing but the head of the log, however many there are.
func TestE10_IdleGroupsCostNothing(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		a := at.work(pawl.Config{}, func(e *pawl.Engine) {
			for i := range 50 {
				pawl.Subscribe(e, fmt.Sprint("group-", i), "orders.*", func(context.Context, *pawl.Message[Placed]) error { return nil })
			}
		})
		a.place(0, 10)
		pass(10 * time.Second)
		turns := a.way.turns.Load()
		pass(time.Minute)
		if n := a.way.turns.Load() - turns; n > 0 {
			t.Errorf("%d turns in an idle minute", n)
		}
	})
}

// Events of one topic wake those who read it, and nobody else.
func TestE10_ABusyTopicWakesItsOwnGroups(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var busy tally
		a := at.work(pawl.Config{}, func(e *pawl.Engine) {
			for i := range 50 {
				pawl.Subscribe(e, fmt.Sprint("quiet-", i), "quiet.*", func(context.Context, *pawl.Message[pawl.Raw]) error {
					t.Error("an event of another topic")
					return nil
				})
			}
			billing(&busy)(e)
		})
		b := at.settle(pawl.Config{})
		pass(5 * time.Second)
		turns := a.way.turns.Load()
		for i := range 20 {
			b.place(10*i, 10)
			pass(2 * time.Second)
		}
		if n := a.way.turns.Load() - turns; n < 20 || n > 200 || len(busy.seen()) != 200 {
			t.Errorf("%d turns for %d events in 20 lots", n, len(busy.seen()))
		}
	})
}

// Events of another process are handled when they come: nobody waits for a poll.
func TestE10_EventsOfAnotherProcessAreHeardOf(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var seen tally
		at.work(pawl.Config{}, billing(&seen))
		b := at.settle(pawl.Config{})
		pass(10 * time.Second)
		for i := range 10 {
			b.place(3*i, 3)
			pass(150 * time.Millisecond)
			if n := len(seen.seen()); n != 3*i+3 {
				t.Fatalf("%d of %d events are handled after 150 ms", n, 3*i+3)
			}
			pass(2 * time.Second)
		}
	})
}

// What a member leaves is taken over at once by those of other processes: nobody waits for a poll, nor for new events.
func TestE8_StripesChangeHandsBetweenProcessesAtOnce(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var seen tally
		a := at.work(pawl.Config{}, billing(&seen, pawl.Ordered()))
		b := at.settle(pawl.Config{Grace: time.Second})
		pawl.Subscribe(b.Engine, "billing", "orders.*", func(ctx context.Context, m *pawl.Message[Placed]) error {
			<-ctx.Done() // it does nothing until it is told to stop
			return context.Cause(ctx)
		}, pawl.Ordered())
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- b.Run(ctx) }()
		pass(10 * time.Second)
		a.place(0, 200)
		pass(10 * time.Second)
		if n := len(seen.seen()); n == 0 || n == 200 {
			t.Fatalf("%d of 200 events are of the first member's stripes, want some", n)
		}
		stop()
		if err := <-stopped; err == nil {
			t.Error("its handlers were ended, and nobody was told")
		}
		pass(150 * time.Millisecond)
		if n := len(seen.seen()); n != 200 {
			t.Errorf("%d of 200 events are handled 150 ms after the other member has left", n)
		}
	})
}

// When the lease of the process is over, others may have its events: its handlers are told.
func TestE14_TheEndOfTheLeaseCancelsHandlers(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		cause := make(chan error, 1)
		a := at.work(pawl.Config{LostAfter: 20 * time.Second}, func(e *pawl.Engine) {
			pawl.Subscribe(e, "billing", "orders.*", func(ctx context.Context, _ *pawl.Message[Placed]) error {
				select {
				case <-ctx.Done():
					cause <- context.Cause(ctx)
				case <-time.After(time.Minute): // virtual: long after the lease
					cause <- nil
				}
				return nil
			}, pawl.InFlight(1))
		})
		a.place(0, 1)
		soon()
		a.way.cutOff.Store(true)
		a.way.silent.Store(true)
		if err := <-cause; !errors.Is(err, stream.ErrFeedLost) {
			t.Errorf("the handler was told %v", err)
		}
		a.way.cutOff.Store(false)
		a.way.silent.Store(false)
		pass(30 * time.Second) // it joins again
	})
}

// Names are any text, and two subscriptions of one group are two members.
func TestE8_NamesAreAnyText(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var seen tally
		group := "teams/billing " + strings.Repeat("ü", 100)
		a := at.work(pawl.Config{}, func(e *pawl.Engine) {
			for range 2 {
				pawl.Subscribe(e, group, "orders.*", func(_ context.Context, m *pawl.Message[Placed]) error {
					seen.add(m.Data.Order)
					return nil
				})
			}
		})
		a.place(0, 20)
		pass(3 * time.Second)
		if info, err := a.Group(group).Info(t.Context()); err != nil || info.Members != 2 || len(seen.seen()) != 20 {
			t.Errorf("%+v, %v, %d events", info, err, len(seen.seen()))
		}
	})
}
