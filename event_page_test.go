package pawl_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/stream"
)

// A page visits so many rows and no more, and goes on where it ended.
func TestE5_PagesOfEventsAreBounded(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		r := at.settle(pawl.Config{})
		r.place(0, 10)
		var got []int
		rare := stream.Filter{Topic: "orders.*", Key: "order-7"}
		pages := 0
		for start, more := stream.FromStart(), true; more; pages++ {
			page, err := r.EventPage(t.Context(), rare, start, 3)
			r.must(err)
			if page.Visited > 3 {
				t.Errorf("%d rows visited", page.Visited)
			}
			got = append(got, r.orders(page.Events)...)
			start, more = stream.FromPosition(page.Next), page.More
		}
		if !slices.Equal(got, []int{7}) || pages != 4 {
			t.Errorf("%v in %d pages", got, pages)
		}
		page, err := r.LastEvents(t.Context(), stream.Filter{Topic: "orders.placed"}, stream.Position{}, 4)
		r.must(err)
		if got := r.orders(page.Events); !slices.Equal(got, []int{9, 8, 7, 6}) || !page.More {
			t.Errorf("the last are %v", got)
		}
		page, err = r.LastEvents(t.Context(), stream.Filter{}, page.Next, 100)
		r.must(err)
		if got := r.orders(page.Events); !slices.Equal(got, []int{5, 4, 3, 2, 1, 0}) || page.More {
			t.Errorf("before them %v", got)
		}
		if _, err := r.EventPage(t.Context(), stream.Filter{}, stream.FromStart(), pawl.MaxPoll+1); err == nil {
			t.Error("a page without bound")
		}
	})
}

// What is left of a cursor is told by the age of the next event, or that there is none.
func TestE6_ACursorSaysSinceWhenItIsBehind(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		r := at.settle(pawl.Config{})
		c, err := r.Cursor(t.Context(), "sums", stream.Filter{Topic: "orders.*", Key: "order-150"})
		r.must(err)
		left := func() pawl.CursorLeft {
			t.Helper()
			i, err := r.CursorNamed(t.Context(), "sums")
			r.must(err)
			left, err := r.CursorLeft(t.Context(), &i)
			r.must(err)
			return left
		}
		if l := left(); !l.CaughtUp || !l.Next.IsZero() {
			t.Errorf("of nothing: %+v", l)
		}
		r.place(0, 150)
		if l := left(); l.CaughtUp || !l.Next.IsZero() {
			t.Errorf("nothing for it among the events that were looked at: %+v", l)
		}
		r.place(150, 1)
		b, err := c.Poll(t.Context(), 1000)
		r.must(err)
		if l := left(); !l.Next.IsZero() {
			t.Errorf("its event is far off: %+v", l)
		}
		r.must(r.SeekCursor(pawl.As(t.Context(), "ann", "nearer"), "sums", stream.FromPosition(stream.At(b.Position().Epoch(), b.Position().Seq()-1))))
		if l := left(); l.CaughtUp || !l.Next.Equal(b.Events[0].Appended) {
			t.Errorf("%+v, want %s", l, b.Events[0].Appended)
		}
		r.must(r.SeekCursor(pawl.As(t.Context(), "ann", "done"), "sums", stream.FromEnd()))
		if l := left(); !l.CaughtUp {
			t.Errorf("at the end: %+v", l)
		}
	})
}

// Topics tell when something was last published to them.
func TestE5_TopicsTellTheirNewestEvent(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		r := at.settle(pawl.Config{})
		for i := range 3 {
			_, err := r.Publish(t.Context(), fmt.Sprint("topic.", i%2), Placed{i})
			r.must(err)
			pass(time.Second)
		}
		page, err := r.LastEvents(t.Context(), stream.Filter{}, stream.Position{}, 2)
		r.must(err)
		topics, err := r.Topics(t.Context(), "topic.*", "", 10)
		r.must(err)
		if len(topics) != 2 || !topics[0].Newest.Equal(page.Events[0].Appended) || !topics[1].Newest.Equal(page.Events[1].Appended) {
			t.Errorf("%+v, want those of %+v", topics, page.Events)
		}
	})
}
