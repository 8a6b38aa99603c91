package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/memory"
)

// What a handler says wins over what it returns; without a word nil acks and an error retries.
func TestE9_AnExplicitVerdictWinsOverTheError(t *testing.T) {
	for name, c := range map[string]struct {
		say  func(m *consumer.Message) error
		err  error
		want string // left in the group with its failures, parked, or done
	}{
		"nothing, nil":   {nil, nil, "done"},
		"nothing, error": {nil, errBroken, "1 failure"},
		"ack, nil":       {(*consumer.Message).Ack, nil, "done"},
		"ack, error":     {(*consumer.Message).Ack, errBroken, "done"},
		"retry, nil":     {func(m *consumer.Message) error { return m.Retry("later", time.Minute) }, nil, "1 failure"},
		"reject, nil":    {func(m *consumer.Message) error { return m.Reject("bad") }, nil, "parked: bad"},
		"reject, error":  {func(m *consumer.Message) error { return m.Reject("bad") }, errBroken, "parked: bad"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, memory.Options{}, func(l *lab) {
				l.publish("t.a", "x")
				s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
					if c.say != nil {
						if err := c.say(m); err != nil {
							t.Error(err)
						}
					}
					return c.err
				})
				s.close()
				got := "done"
				if n, ok := l.left()["x"]; ok {
					got = fmt.Sprint(n, " failure")
				}
				if list := l.backend.Parked("g"); len(list) > 0 {
					got = "parked: " + list[0].Reason
				}
				equal(t, "it is", got, c.want)
			})
		})
	}
}

func TestE9_InManualModeTheErrorDecidesNothing(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		l.publish("t.a", "ack", "retry", "reject")
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			switch m.Event.ID {
			case "ack":
				return errors.Join(m.Ack(), errBroken)
			case "retry":
				return m.Retry("later", time.Hour)
			}
			return m.Reject("bad")
		}, func(c *consumer.Config) { c.Ack = consumer.Manual })
		s.close()
		equal(t, "left", l.left(), map[string]int{"retry": 1})
		equal(t, "parked", l.parked(), []string{"reject after 1: bad"})
	})
}

// A handler that returns without a verdict gives its slot to others, and its event comes again,
// uncounted, as often as it takes.
func TestE9_ADroppedDeliveryComesAgainAndFreesItsSlot(t *testing.T) {
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		t.Run(mode.String(), func(t *testing.T) {
			inLab(t, memory.Options{}, func(l *lab) {
				drops := 0
				s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
					if m.Event.ID == "drop" && drops < 30 {
						drops++
						return errBroken
					}
					return m.Ack()
				}, func(c *consumer.Config) {
					c.Ack, c.InFlight, c.Deliveries, c.Membership.Mode = consumer.Manual, 1, 2, mode
				})
				l.publish("t.a", "drop@a", "other@b", "behind@a")
				after(0)
				want := []string{"drop", "other", "behind"}
				if mode == stream.Ordered {
					want = want[:2]
				}
				equal(t, "at first", l.ids(), want)
				after(40 * time.Second)
				equal(t, "dropped", s.Stats().Dropped, 30)
				equal(t, "acked", s.Stats().Acked, 3)
				for _, r := range l.runs {
					equal(t, r.id, r.failures, 0)
				}
				s.close()
				equal(t, "left", l.left(), map[string]int{})
			})
		})
	}
}

func TestE9_OnReceiveItIsAckedBeforeItsHandlerStarts(t *testing.T) {
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		t.Run(mode.String(), func(t *testing.T) {
			inLab(t, memory.Options{}, func(l *lab) {
				acked := map[int64]bool{}
				l.faulty.next = func(settled []stream.Settlement, _ stream.Want) error {
					for _, s := range settled {
						equal(t, "verdict", s.Verdict, stream.Acked)
						acked[s.Ref] = true
					}
					takes(time.Millisecond)
					return nil
				}
				var s *subscription
				s = l.subscribe(func(_ context.Context, m *consumer.Message) error {
					if begun, acks := len(l.ids()), s.Stats().Acked; int(acks) < begun {
						t.Errorf("%d handlers have started and %d acks are stored", begun, acks)
					}
					for _, err := range []error{m.Reject("a verdict that comes late")} {
						if err != nil {
							t.Error(err)
						}
					}
					if err := m.Ack(); !errors.Is(err, stream.ErrSettled) {
						t.Errorf("a second verdict: %v", err)
					}
					panic("harmless")
				}, func(c *consumer.Config) {
					c.Ack, c.InFlight, c.Membership.Mode, c.Backoff = consumer.OnReceive, 3, mode, nil
				})
				l.publish("t.a", numbers(20)...)
				after(time.Hour)
				equal(t, "runs", len(l.ids()), 20)
				equal(t, "acks", len(acked), 20)
				s.close()
				equal(t, "left", l.left(), map[string]int{})
				equal(t, "parked", l.parked(), nil)
			})
		})
	}
}

// What was acked on receive and has no handler yet runs in a drain: nobody else gets it.
func TestE9_OnReceiveADrainRunsWhatIsAcked(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		l.publish("t.a", numbers(5)...)
		l.faulty.next = func(settled []stream.Settlement, _ stream.Want) error {
			if len(settled) > 0 {
				takes(time.Second) // the close comes while the acks are on their way
			}
			return nil
		}
		s := l.subscribe(fine, func(c *consumer.Config) { c.Ack, c.Backoff = consumer.OnReceive, nil })
		s.close()
		equal(t, "runs and what is left", len(l.ids())+len(l.left()), 5)
		equal(t, "acked", int(s.Stats().Acked), len(l.ids()))
	})
}

func TestE9_AVerdictIsGivenOnce(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		var kept *consumer.Message
		s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
			if m.Event.ID == "silent" {
				kept = m
				return nil
			}
			if err := m.Retry("no", -1); !errors.Is(err, job.ErrInvalid) {
				t.Errorf("a delay before now: %v", err)
			}
			if err := m.Ack(); err != nil {
				t.Errorf("the first: %v", err)
			}
			for _, say := range []func() error{m.Ack, func() error { return m.Reject("x") }, func() error { return m.Retry("x", 0) }} {
				if err := say(); !errors.Is(err, stream.ErrSettled) {
					t.Errorf("another: %v", err)
				}
			}
			return nil
		})
		l.publish("t.a", "1", "silent")
		after(time.Second)
		if err := kept.Reject("after its handler has returned"); !errors.Is(err, stream.ErrSettled) {
			t.Errorf("too late: %v", err)
		}
		equal(t, "counted", s.Stats().Twice, 4)
		equal(t, "acked", s.Stats().Acked, 2)
		s.close()
		equal(t, "parked", l.parked(), nil)
	})
}

// Handlers follow a random script, and a model that knows only the rules says how often each
// event is handled and how it ends.
func TestE9_RandomHandlersAgreeWithTheModel(t *testing.T) {
	type act struct {
		say  string // "", ack, retry, reject
		does string // nil, error, panic
	}
	const events, deliveries = 120, 4
	for mode := range 3 {
		for _, ack := range []consumer.AckMode{consumer.OnSuccess, consumer.Manual, consumer.OnReceive} {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("%v_%d", stream.Mode(mode), ack), func(t *testing.T) {
				t.Logf("seed %d", seed)
				dice := rand.New(rand.NewPCG(seed, 1))
				script, runs, ends := map[string][]act{}, map[string]int{}, map[string]string{}
				var ids []string
				for i := range events {
					id := fmt.Sprint("e", i)
					ids = append(ids, fmt.Sprintf("%s@k%d", id, dice.IntN(9)))
					failures := 0
					for ends[id] == "" { // the model
						a := act{[]string{"", "", "ack", "retry", "reject"}[dice.IntN(5)], []string{"nil", "error", "panic"}[dice.IntN(3)]}
						script[id] = append(script[id], a)
						runs[id]++
						failed := a.say == "retry" || a.say == "" && (a.does == "panic" || a.does == "error" && ack == consumer.OnSuccess)
						switch {
						case ack == consumer.OnReceive, a.say == "ack", a.say == "" && a.does == "nil" && ack == consumer.OnSuccess:
							ends[id] = "done"
						case a.say == "reject":
							ends[id] = "dead"
						case failed:
							if failures++; failures == deliveries {
								ends[id] = "dead"
							}
						}
					}
				}
				inLab(t, memory.Options{}, func(l *lab) {
					count := map[string]int{}
					s := l.subscribe(func(_ context.Context, m *consumer.Message) error {
						l.mu.Lock()
						a := act{"", "nil"}
						if i := count[m.Event.ID]; i < len(script[m.Event.ID]) {
							a = script[m.Event.ID][i]
						}
						count[m.Event.ID]++
						l.mu.Unlock()
						takes(time.Millisecond)
						switch a.say {
						case "ack":
							m.Ack()
						case "retry":
							m.Retry("asked", 5*time.Millisecond)
						case "reject":
							m.Reject("asked")
						}
						switch a.does {
						case "panic":
							panic("scripted")
						case "error":
							return errBroken
						}
						return nil
					}, func(c *consumer.Config) {
						c.Ack, c.Deliveries, c.InFlight, c.Membership.Mode = ack, deliveries, 7, stream.Mode(mode)
						if c.Backoff = nil; ack != consumer.OnReceive {
							c.Backoff = func(consumer.Failed) time.Duration { return 3 * time.Millisecond }
						}
					})
					l.publish("t.a", ids...)
					after(time.Hour)
					equal(t, "runs", count, runs)
					got := map[string]string{}
					for id := range script {
						got[id] = "done"
					}
					for _, p := range l.backend.Parked("g") {
						got[p.Event.ID] = "dead"
					}
					equal(t, "ends", got, ends)
					st := s.Stats()
					equal(t, "settled", st.Acked+st.Dead, events)
					equal(t, "open", st.Open, 0)
					s.close()
				})
			})
		}
	}
}
