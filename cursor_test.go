package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Cursors on the way to the store: a process that is cut off reaches none.

var _ store.Cursors = (*way)(nil)

var errCutOff = fmt.Errorf("%w: cut off by the test", store.ErrUnavailable)

func (w *way) cursors() (store.Cursors, error) {
	if w.cutOff.Load() {
		return nil, errCutOff
	}
	return w.Store.(store.Cursors), nil
}

func (w *way) Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	return w.Store.(store.Log).Append(ctx, drafts)
}

func (w *way) Head(ctx context.Context) (stream.Position, error) {
	w.heads.Add(1)
	return w.Store.(store.Log).Head(ctx)
}

func (w *way) Events(ctx context.Context, q store.EventQuery) (store.EventPage, error) {
	return w.Store.(store.Log).Events(ctx, q)
}

func (w *way) Topics(ctx context.Context, p stream.TopicPattern, after string, n int) ([]store.TopicInfo, error) {
	return w.Store.(store.Log).Topics(ctx, p, after, n)
}

func (w *way) EventsBack(ctx context.Context, q store.EventQuery) (store.EventPage, error) {
	return w.Store.(store.LogBack).EventsBack(ctx, q)
}

func (w *way) NewestEvents(ctx context.Context, topics []store.TopicInfo) (map[int32]time.Time, error) {
	return w.Store.(store.LogBack).NewestEvents(ctx, topics)
}

func (w *way) OpenCursor(ctx context.Context, o store.CursorOpen) (store.CursorState, error) {
	c, err := w.cursors()
	if err != nil {
		return store.CursorState{}, err
	}
	return c.OpenCursor(ctx, o)
}

func (w *way) MoveCursor(ctx context.Context, m store.CursorMove) (store.CursorState, error) {
	c, err := w.cursors()
	if err != nil {
		return store.CursorState{}, err
	}
	return c.MoveCursor(ctx, m)
}

func (w *way) RenewCursor(ctx context.Context, m store.CursorMove) error {
	c, err := w.cursors()
	if err != nil {
		return err
	}
	return c.RenewCursor(ctx, m)
}

func (w *way) FreeCursor(ctx context.Context, m store.CursorMove) error {
	c, err := w.cursors()
	if err != nil {
		return err
	}
	return c.FreeCursor(ctx, m)
}

func (w *way) ListCursors(ctx context.Context, after string, n int) ([]store.CursorInfo, error) {
	return w.Store.(store.Cursors).ListCursors(ctx, after, n)
}

func (w *way) CursorNamed(ctx context.Context, name string) (store.CursorInfo, error) {
	return w.Store.(store.Cursors).CursorNamed(ctx, name)
}

func (w *way) SeekCursor(ctx context.Context, name string, to stream.Position, op store.Operator) error {
	return w.Store.(store.Cursors).SeekCursor(ctx, name, to, op)
}

func (w *way) DeleteCursor(ctx context.Context, name string, op store.Operator) error {
	return w.Store.(store.Cursors).DeleteCursor(ctx, name, op)
}

type Placed struct{ Order int }

// place publishes events of orders, from a number on.
func (r *resident) place(from, n int) (replies []stream.PublishReply) {
	r.town.t.Helper()
	var list []pawl.EventItem
	for i := range n {
		list = append(list, pawl.NewEvent("orders.placed", Placed{from + i}, pawl.Key(fmt.Sprint("order-", from+i))))
	}
	replies, err := r.PublishMany(r.town.t.Context(), list...)
	r.must(err)
	return replies
}

// orders are the numbers of the orders that events are about.
func (r *resident) orders(events []stream.Event) (numbers []int) {
	r.town.t.Helper()
	for _, ev := range events {
		var p Placed
		r.must(r.Decode(ev, &p))
		numbers = append(numbers, p.Order)
	}
	return numbers
}

func upTo(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

func TestE1_AnEventIsWhatItWasPublishedAs(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		r := at.settle(pawl.Config{})
		_, err := r.Publish(t.Context(), "orders.placed", &Placed{7}, pawl.Key("order-7"), pawl.Headers(map[string]string{"a": "b"}),
			pawl.Source("shop"), pawl.Correlation("c"), pawl.Causation("d"), pawl.TTL(time.Hour), pawl.SchemaVersion(2))
		r.must(err)
		_, err = r.Publish(t.Context(), "raw", pawl.Raw{0, 1}, pawl.EventType("bytes"))
		r.must(err)
		var got []stream.Event
		for ev, err := range r.Events(t.Context(), stream.Filter{}, stream.FromStart()) {
			r.must(err)
			got = append(got, ev)
		}
		a, b := got[0], got[1]
		if a.Type != "Placed" || a.Key != "order-7" || a.Headers["a"] != "b" || a.Source != "shop" || a.Correlation != "c" || a.Causation != "d" ||
			a.ContentType != "application/json" || string(a.Data) != `{"Order":7}` || a.Schema != 2 || !a.Expires.Equal(a.Appended.Add(time.Hour)) || a.ID == "" {
			t.Errorf("%+v", a)
		}
		if b.Type != "bytes" || string(b.Data) != "\x00\x01" || b.ContentType != "" || b.ID == a.ID {
			t.Errorf("%+v", b)
		}
		for name, try := range map[string]func() error{
			"topic": func() error { _, err := r.Publish(t.Context(), "orders.*", nil); return err },
			"key": func() error {
				_, err := r.Publish(t.Context(), "a", nil, pawl.Key(strings.Repeat("x", 256)))
				return err
			},
			"data":   func() error { _, err := r.Publish(t.Context(), "a", pawl.Raw(make([]byte, 4<<20+1))); return err },
			"option": func() error { _, err := r.Publish(t.Context(), "a", nil, nil); return err },
			"event 1": func() error {
				_, err := r.PublishMany(t.Context(), pawl.NewEvent("a", 1), pawl.NewEvent("", 1))
				return err
			},
		} {
			if err := try(); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(slices.Collect(seq(r.Events(t.Context(), stream.Filter{}, stream.FromStart())))); n != 2 {
			t.Errorf("%d events, what was refused is there", n)
		}
	})
}

func TestE2_TheSameIDIsOneEvent(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		a, b := at.settle(pawl.Config{}), at.settle(pawl.Config{})
		first, err := a.Publish(t.Context(), "orders.placed", Placed{1}, pawl.EventID("evt-1"), pawl.Idempotency("req-1"))
		a.must(err)
		for name, opts := range map[string][]pawl.PublishOption{
			"the id":              {pawl.EventID("evt-1")},
			"the key":             {pawl.Idempotency("req-1")},
			"the key, another id": {pawl.EventID("evt-2"), pawl.Idempotency("req-1")},
		} {
			got, err := b.Publish(t.Context(), "orders.placed", Placed{2}, opts...)
			b.must(err)
			if got.ID != "evt-1" || !got.Duplicate || !got.Position.Equal(first.Position) {
				t.Errorf("%s: %+v", name, got)
			}
		}
		b.must(b.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			got, err := tx.Publish(ctx, "orders.placed", Placed{3}, pawl.EventID("evt-1"))
			if !got.Duplicate {
				t.Errorf("in a transaction: %+v", got)
			}
			return err
		}))
		events := slices.Collect(seq(a.Events(t.Context(), stream.Filter{}, stream.FromStart())))
		if got := a.orders(events); !slices.Equal(got, []int{1}) {
			t.Errorf("there are %v", got)
		}
		for name, opt := range map[string]pawl.PublishOption{"id": pawl.EventID(""), "idempotency key": pawl.Idempotency("")} {
			if _, err := a.Publish(t.Context(), "a", 1, opt); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// seq leaves the errors of an iterator out.
func seq(s func(func(stream.Event, error) bool)) func(func(stream.Event) bool) {
	return func(yield func(stream.Event) bool) { s(func(e stream.Event, _ error) bool { return yield(e) }) }
}

func TestE5_StartsOfReaders(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		r := at.settle(pawl.Config{})
		first := r.place(0, 10)
		pass(time.Hour)
		noon := time.Now()
		r.place(10, 10)
		pass(time.Hour)
		r.place(20, 10)
		for name, c := range map[string]struct {
			start stream.Start
			want  []int
		}{
			"the start":         {stream.FromStart(), upTo(0, 30)},
			"the end":           {stream.FromEnd(), nil},
			"a position":        {stream.FromPosition(first[4].Position), upTo(5, 30)},
			"a time":            {stream.FromTime(noon), upTo(10, 30)},
			"between two times": {stream.FromTime(noon.Add(30 * time.Minute)), upTo(20, 30)},
			"a time of before":  {stream.FromTime(noon.Add(-24 * time.Hour)), upTo(0, 30)},
			"a time to come":    {stream.FromTime(noon.Add(24 * time.Hour)), nil},
		} {
			got := r.orders(slices.Collect(seq(r.Events(t.Context(), stream.Filter{Topic: "orders.*"}, c.start))))
			if !slices.Equal(got, c.want) {
				t.Errorf("from %s: %v, want %v", name, got, c.want)
			}
		}
	})
}

// Follow goes on with what comes, from this process and from others.
func TestE5_FollowGoesOn(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		r, other := at.settle(pawl.Config{}), at.settle(pawl.Config{})
		r.place(0, 3)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var got []int
		over := make(chan struct{})
		go func() {
			defer close(over)
			for ev, err := range r.Follow(ctx, stream.Filter{Topic: "orders.*"}, stream.FromStart()) {
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				got = append(got, r.orders([]stream.Event{ev})...)
				mu.Unlock()
			}
		}()
		seen := func(what string, want int) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(got, upTo(0, want)) {
				t.Errorf("%s: %v", what, got)
			}
		}
		pass(0)
		seen("at first", 3)
		r.place(3, 2)
		pass(10 * time.Millisecond)
		seen("of this process, at once", 5)
		other.place(5, 2)
		pass(1100 * time.Millisecond)
		seen("of another process, with the next poll", 7)
		cancel()
		<-over
		heads := r.way.heads.Load()
		pass(time.Minute)
		if n := r.way.heads.Load() - heads; n > 1 {
			t.Errorf("%d looks at the head while nobody reads", n)
		}
	})
}

func TestE5_ManyIdleReadersLookOnce(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		r := at.settle(pawl.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for range 50 {
			readers.Go(func() {
				for range r.Follow(ctx, stream.Filter{Topic: "orders.*"}, stream.FromEnd()) {
				}
			})
		}
		pass(10 * time.Second)
		before := r.way.heads.Load()
		pass(time.Minute)
		if n := r.way.heads.Load() - before; n < 55 || n > 65 {
			t.Errorf("%d looks at the head in a minute, of 50 readers", n)
		}
		cancel()
		readers.Wait()
	})
}

func TestE6_ACursorIsReadByOne(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		r, other := at.settle(pawl.Config{}), at.settle(pawl.Config{})
		r.place(0, 10)
		orders := stream.Filter{Topic: "orders.*"}
		c, err := r.Cursor(t.Context(), "c", orders)
		r.must(err)
		one, err := c.Poll(t.Context(), 3)
		r.must(err)
		two, err := c.Poll(t.Context(), 3)
		r.must(err)
		if got := append(r.orders(one.Events), r.orders(two.Events)...); !slices.Equal(got, upTo(0, 6)) {
			t.Errorf("polled %v", got)
		}
		if err := two.Commit(t.Context()); !errors.Is(err, pawl.ErrBatchOrder) {
			t.Errorf("the second before the first: %v", err)
		}
		r.must(one.Commit(t.Context()))
		if err := one.Commit(t.Context()); !errors.Is(err, pawl.ErrBatchOrder) {
			t.Errorf("the first again: %v", err)
		}
		r.must(two.Commit(t.Context()))
		three, err := c.Poll(t.Context(), 3)
		r.must(err)

		taken, err := other.Cursor(t.Context(), "c", orders)
		r.must(err)
		if err := three.Commit(t.Context()); !errors.Is(err, pawl.ErrCursorLost) {
			t.Errorf("who has lost it commits: %v", err)
		}
		rest, err := taken.Poll(t.Context(), 100)
		r.must(err)
		if got := r.orders(rest.Events); !slices.Equal(got, upTo(6, 10)) {
			t.Errorf("the other reads %v", got)
		}
		taken.Rewind()
		again, err := taken.Poll(t.Context(), 2)
		r.must(err)
		if got := r.orders(again.Events); !slices.Equal(got, upTo(6, 8)) {
			t.Errorf("after a rewind %v", got)
		}
		if _, err := r.Cursor(t.Context(), "c", stream.Filter{Topic: "other"}); !errors.Is(err, pawl.ErrCursorFilter) {
			t.Errorf("with another filter: %v", err)
		}
		for _, n := range []int{0, -1, pawl.MaxPoll + 1} {
			if _, err := taken.Poll(t.Context(), n); !errors.Is(err, pawl.ErrInvalid) {
				t.Errorf("poll %d: %v", n, err)
			}
		}
	})
}

// Rows, jobs and events of a transaction are there with the cursor's position, or none of it.
func TestP3_ABatchCommitsWithItsEffects(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		r := at.settle(pawl.Config{})
		r.place(0, 4)
		c, err := r.Cursor(t.Context(), "c", stream.Filter{Topic: "orders.*"})
		r.must(err)
		b, err := c.Poll(t.Context(), 2)
		r.must(err)
		broken := errors.New("broken")
		err = r.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			if _, err := tx.Publish(ctx, "seen", b.Events[0].ID); err != nil {
				return err
			}
			r.must(tx.Commit(b))
			return broken
		})
		if !errors.Is(err, broken) || !c.Position().IsZero() {
			t.Errorf("rolled back: %v, at %s", err, c.Position().Debug())
		}
		r.must(r.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			if _, err := tx.Publish(ctx, "seen", b.Events[0].ID); err != nil {
				return err
			}
			return tx.Commit(b)
		}))
		if !c.Position().Equal(b.Position()) {
			t.Errorf("committed: at %s", c.Position().Debug())
		}
		if seen := slices.Collect(seq(r.Events(t.Context(), stream.Filter{Topic: "seen"}, stream.FromStart()))); len(seen) != 1 {
			t.Errorf("%d events of the transaction", len(seen))
		}
		next, err := c.Poll(t.Context(), 9)
		r.must(err)
		if got := r.orders(next.Events); !slices.Equal(got, upTo(2, 4)) {
			t.Errorf("then %v", got)
		}
		r.must(next.Commit(t.Context()))
	})
}

func TestE27_WaitForWhatWasPublished(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		r := at.settle(pawl.Config{})
		c, err := r.Cursor(t.Context(), "c", stream.Filter{Topic: "orders.*"})
		r.must(err)
		reply := r.place(0, 3)
		other, err := r.Publish(t.Context(), "mails", "x")
		r.must(err)
		short := func(p stream.Position) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return r.WaitFor(ctx, "c", p)
		}
		if err := short(reply[2].Position); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody has read it: %v", err)
		}
		waited := make(chan error, 1)
		go func() { waited <- short(other.Position) }()
		pass(time.Second)
		b, err := c.Poll(t.Context(), 3)
		r.must(err)
		r.must(b.Commit(t.Context()))
		if err := <-waited; err != nil {
			t.Errorf("behind it is only what the cursor does not read: %v", err)
		}
		if err := short(reply[0].Position); err != nil {
			t.Error(err)
		}
		if err := r.WaitFor(t.Context(), "none", reply[0].Position); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("a cursor that is not there: %v", err)
		}
	})
}
