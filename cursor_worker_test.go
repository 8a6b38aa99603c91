package pawl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/supervise"
)

// tally is what a projection has seen, in order.
type tally struct {
	mu   sync.Mutex
	list []int
}

func (s *tally) add(n ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, n...)
}

func (s *tally) seen() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

func TestE7_OneOwnerInOrder(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var sum tally
		busy := 0
		project := func(e *pawl.Engine) {
			pawl.HandleCursor(e, "sums", stream.Filter{Topic: "orders.*"}, func(ctx context.Context, b *pawl.EventBatch) error {
				if busy++; busy > 1 {
					t.Error("two work on it at once")
				}
				defer func() { busy-- }()
				time.Sleep(10 * time.Millisecond) // virtual: the work
				for _, ev := range b.Events {
					var p Placed
					if err := e.Decode(ev, &p); err != nil {
						return err
					}
					sum.add(p.Order)
				}
				return nil
			})
		}
		a := at.work(pawl.Config{}, project)
		b := at.work(pawl.Config{}, project)
		a.place(0, 100)
		soon()
		b.place(100, 100)
		pass(2 * time.Second)
		if got := sum.seen(); !slices.Equal(got, upTo(0, 200)) {
			t.Errorf("seen %v", got)
		}
		a.leave() // the other takes over at once: it was freed
		b.place(200, 50)
		pass(10 * time.Second)
		if got := sum.seen(); !slices.Equal(got, upTo(0, 250)) {
			t.Errorf("after a stop %v", got)
		}
	})
}

// A worker that is cut off loses the cursor when its lease is over, and commits nothing any
// more; the other goes on where it was.
func TestE7_TakeoverWithinTheLease(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var done tally
		work := func(e *pawl.Engine) {
			pawl.HandleCursor(e, "sums", stream.Filter{Topic: "orders.*"}, func(ctx context.Context, b *pawl.EventBatch) error {
				tx := b.Tx()
				for _, ev := range b.Events {
					if _, err := tx.Publish(ctx, "done", pawl.Raw(ev.Data)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		a := at.work(pawl.Config{LostAfter: 20 * time.Second}, work)
		b := at.work(pawl.Config{LostAfter: 20 * time.Second}, work)
		b.place(0, 10)
		soon()
		a.way.cutOff.Store(true)
		began := time.Now()
		info, err := b.CursorNamed(t.Context(), "sums")
		b.must(err)
		for turn := info.Turn; info.Turn == turn; {
			if time.Since(began) > 30*time.Second {
				t.Fatal("nobody has taken over")
			}
			pass(time.Second)
			info, err = b.CursorNamed(t.Context(), "sums")
			b.must(err)
		}
		if took := time.Since(began); took < 13*time.Second { // renewed every third of it
			t.Errorf("taken over after %v", took)
		}
		b.place(10, 10)
		pass(3 * time.Second)
		for ev := range seq(b.Events(t.Context(), stream.Filter{Topic: "done"}, stream.FromStart())) {
			done.add(b.orders([]stream.Event{ev})...)
		}
		if got := done.seen(); !slices.Equal(got, upTo(0, 20)) {
			t.Errorf("done %v", got)
		}
		a.way.cutOff.Store(false)
		soon()
	})
}

// One event of many that always fails is found by halves, and is a dead letter after its
// deliveries; all others are done once.
func TestE7_APoisonEventIsADeadLetter(t *testing.T) {
	for name, fail := range map[string]func(){
		"error": nil,
		"panic": func() { panic("no luck") },
	} {
		t.Run(name, func(t *testing.T) {
			inTown(t, func(t *testing.T, at *town) {
				var done tally
				alone := 0
				r := at.work(pawl.Config{}, func(e *pawl.Engine) {
					pawl.HandleCursor(e, "sums", stream.Filter{Topic: "orders.*"}, func(ctx context.Context, b *pawl.EventBatch) error {
						var list []int
						for _, ev := range b.Events {
							var p Placed
							if err := e.Decode(ev, &p); err != nil {
								return err
							}
							if p.Order == 77 || p.Order == 78 {
								if len(b.Events) == 1 && p.Order == 77 {
									alone++
								}
								if fail != nil {
									fail()
								}
								return errors.New("no luck")
							}
							list = append(list, p.Order)
						}
						done.add(list...)
						return nil
					}, pawl.Deliveries(4), pawl.DeadLetter("letters"))
				})
				r.place(0, 200)
				pass(10 * time.Minute)
				want := slices.DeleteFunc(upTo(0, 200), func(n int) bool { return n == 77 || n == 78 })
				if got := done.seen(); !slices.Equal(got, want) {
					t.Errorf("done %v", got)
				}
				if alone != 4 {
					t.Errorf("delivered %d times alone, want 4", alone)
				}
				letters := slices.Collect(seq(r.Events(t.Context(), stream.Filter{Topic: "letters"}, stream.FromStart())))
				if got := r.orders(letters); !slices.Equal(got, []int{77, 78}) {
					t.Fatalf("letters of %v", got)
				}
				h := letters[0].Headers
				if h[stream.DeadTopic] != "orders.placed" || h[stream.DeadGroup] != "sums" || h[stream.DeadFailures] != "4" ||
					!strings.Contains(h[stream.DeadReason], "no luck") || letters[0].Key != "order-77" || letters[0].Causation != h[stream.DeadID] {
					t.Errorf("it says %v", h)
				}
			})
		})
	}
}

// An event that ends its process is found by its losses, and innocents are not.
func TestE7_AnEventThatKillsIsADeadLetter(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var done tally
		deaths := 0
		for deaths < 40 {
			r := at.work(pawl.Config{LostAfter: 20 * time.Second}, func(e *pawl.Engine) {
				me := at.open[len(at.open)-1]
				pawl.HandleCursor(e, "sums", stream.Filter{Topic: "orders.*"}, func(ctx context.Context, b *pawl.EventBatch) error {
					list := me.orders(b.Events)
					if slices.Contains(list, 30) {
						me.way.cutOff.Store(true) // nobody hears of it again
						<-ctx.Done()
						return ctx.Err()
					}
					done.add(list...)
					return nil
				}, pawl.Deliveries(2), pawl.DeadLetter("letters"), pawl.EventBatchSize(16))
			})
			if deaths == 0 {
				r.place(0, 60)
			}
			pass(80 * time.Second)
			dead := r.way.cutOff.Load()
			r.leave()
			if !dead {
				break
			}
			deaths++
		}
		if deaths != 4 { // two that made them suspect, two alone
			t.Errorf("%d processes died", deaths)
		}
		got := slices.Compact(slices.Sorted(slices.Values(done.seen())))
		if want := slices.DeleteFunc(upTo(0, 60), func(n int) bool { return n == 30 }); !slices.Equal(got, want) {
			t.Errorf("done %v", got)
		}
		r := at.settle(pawl.Config{})
		letters := slices.Collect(seq(r.Events(t.Context(), stream.Filter{Topic: "letters"}, stream.FromStart())))
		if got := r.orders(letters); !slices.Equal(got, []int{30}) {
			t.Errorf("letters of %v", got)
		}
	})
}

func TestE7_StopsAndRewinds(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var done tally
		say := map[int]error{20: pawl.ErrStopAfter, 40: pawl.ErrStopBefore}
		for i, want := range []int{30, 40} { // batches of 10
			var w *pawl.CursorWorker
			r := at.work(pawl.Config{}, func(e *pawl.Engine) {
				w = pawl.HandleCursor(e, "sums", stream.Filter{Topic: "orders.*"}, func(ctx context.Context, b *pawl.EventBatch) error {
					var p Placed
					if err := e.Decode(b.Events[0], &p); err != nil {
						return err
					}
					if say[p.Order] != pawl.ErrStopBefore {
						for i := range b.Events {
							done.add(p.Order + i)
						}
					}
					return say[p.Order]
				}, pawl.EventBatchSize(10))
			})
			if i == 0 {
				r.place(0, 60)
			}
			if err := w.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			pass(time.Minute)
			if got := done.seen(); !slices.Equal(got, upTo(0, want)) {
				t.Errorf("done %v, want %d", got, want)
			}
			r.leave()
		}
	})
}

func TestE7_ABudgetThatIsSpentIsAnError(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var w *pawl.CursorWorker
		r := at.settle(pawl.Config{})
		w = pawl.HandleCursor(r.Engine, "sums", stream.Filter{}, func(context.Context, *pawl.EventBatch) error { panic("no luck") },
			pawl.Restart(supervise.Bounded{Max: 2, Window: time.Hour}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		r.place(0, 1)
		if err := w.Wait(t.Context()); !errors.Is(err, supervise.ErrGaveUp) || !strings.Contains(err.Error(), "no luck") {
			t.Errorf("wait: %v", err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, supervise.ErrGaveUp) {
			t.Errorf("run: %v", err)
		}
	})
}

func TestE7_BadWorkersAreFaultsOfRun(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		ok := func(context.Context, *pawl.EventBatch) error { return nil }
		for name, register := range map[string]func(*pawl.Engine){
			"name":         func(e *pawl.Engine) { pawl.HandleCursor(e, "", stream.Filter{}, ok) },
			"handler":      func(e *pawl.Engine) { pawl.HandleCursor(e, "a", stream.Filter{}, nil) },
			"Filter.Topic": func(e *pawl.Engine) { pawl.HandleCursor(e, "a", stream.Filter{Topic: "a..b"}, ok) },
			"batch size":   func(e *pawl.Engine) { pawl.HandleCursor(e, "a", stream.Filter{}, ok, pawl.EventBatchSize(0)) },
			"deliveries":   func(e *pawl.Engine) { pawl.HandleCursor(e, "a", stream.Filter{}, ok, pawl.Deliveries(0)) },
			"dead letter":  func(e *pawl.Engine) { pawl.HandleCursor(e, "a", stream.Filter{}, ok, pawl.DeadLetter("*")) },
			"two handlers": func(e *pawl.Engine) {
				pawl.HandleCursor(e, "a", stream.Filter{}, ok)
				pawl.HandleCursor(e, "a", stream.Filter{}, ok)
			},
		} {
			r := at.settle(pawl.Config{})
			register(r.Engine)
			if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A seek of an operator moves a running worker, which goes on from there.
func TestE6_ASeekMovesARunningWorker(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var done tally
		r := at.work(pawl.Config{}, func(e *pawl.Engine) {
			me := at.open[len(at.open)-1]
			pawl.HandleCursor(e, "sums", stream.Filter{Topic: "orders.*"}, func(ctx context.Context, b *pawl.EventBatch) error {
				done.add(me.orders(b.Events)...)
				return nil
			})
		})
		replies := r.place(0, 5)
		soon()
		r.must(r.SeekCursor(pawl.As(t.Context(), "ann", "again"), "sums", stream.FromPosition(replies[1].Position)))
		pass(time.Minute)
		if got, want := done.seen(), append(upTo(0, 5), upTo(2, 5)...); !slices.Equal(got, want) {
			t.Errorf("done %v, want %v", got, want)
		}
		list, err := r.Cursors(t.Context(), "", 10)
		r.must(err)
		if len(list) != 1 || list[0].Name != "sums" || list[0].Until.IsZero() {
			t.Errorf("listed %+v", list)
		}
		topics, err := r.Topics(t.Context(), "orders.>", "", 10)
		r.must(err)
		if len(topics) != 1 || topics[0].Name != "orders.placed" {
			t.Errorf("topics %+v", topics)
		}
	})
}
