package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

func (d *database) logBack() store.LogBack {
	d.Helper()
	l, ok := d.Store.(store.LogBack)
	if !ok {
		d.Fatalf("%T is no store.LogBack", d.Store)
	}
	return l
}

// readBack: what is read from the end is what is read from the start, the other way round.
func readBack(d *database) {
	var drafts []stream.Publication
	for i, topic := range []string{"orders.a", "mails", "orders.b", "orders.a", "mails", "orders.a.x", "orders.b"} {
		drafts = append(drafts, event(topic, string(rune('1'+i)), func(e *stream.Publication) { e.Key = topic }))
	}
	replies := d.publish(drafts...)
	for _, f := range []stream.Filter{{}, {Topic: "orders.*"}, {Topic: "mails"}, {Topic: "none"}, {Key: "mails"}, {Topic: "orders.>", Key: "orders.b"}} {
		want := d.cursor(d.Store, f).all(10)
		slices.Reverse(want)
		match := must[stream.Matcher](d, "filter")(f.Matcher())
		for limit := 1; limit < 9; limit++ {
			var got []string
			for at, more, pages := (stream.Position{}), true, 0; more && pages < 10; pages++ {
				page := must[store.EventPage](d, "back")(d.logBack().EventsBack(d.ctx, store.EventQuery{Match: match, After: at, Limit: limit}))
				if page.Visited > limit {
					d.Errorf("%d rows visited, at most %d", page.Visited, limit)
				}
				for i := range page.Events {
					got = append(got, page.Events[i].ID)
				}
				at, more = page.Next, page.More
			}
			equal(d, "back by "+string(rune('0'+limit)), got, want)
		}
	}
	all := must[stream.Matcher](d, "filter")(stream.Filter{}.Matcher())
	page := must[store.EventPage](d, "back")(d.logBack().EventsBack(d.ctx, store.EventQuery{Match: all, After: replies[2].Position, Limit: 1}))
	equal(d, "up to a position", page.Events[0].ID, "3")
	foreign := stream.At(replies[0].Position.Epoch()+1, 1)
	if _, err := d.logBack().EventsBack(d.ctx, store.EventQuery{Match: all, After: foreign}); !errors.Is(err, store.ErrPosition) {
		d.Errorf("a position of another log: %v", err)
	}
}

func newestEvents(d *database) {
	d.publish(someEvents("a", 2)...)
	d.publish(someEvents("b", 1)...)
	d.publish(someEvents("a", 3)...)
	p := must[stream.TopicPattern](d, "pattern")(stream.ParsePattern("topic", ">"))
	topics := must[[]store.TopicInfo](d, "topics")(d.log(d.Store).Topics(d.ctx, p, "", 10))
	want := map[string]time.Time{}
	for _, e := range d.cursor(d.Store, stream.Filter{}).poll(10).Events {
		want[e.Topic] = e.Appended
	}
	topics = append(topics, store.TopicInfo{Name: "none", ID: 1 << 30})
	newest := must[map[int32]time.Time](d, "newest")(d.logBack().NewestEvents(d.ctx, topics))
	equal(d, "topics", len(newest), 2)
	for _, t := range topics[:2] {
		equal(d, "newest of "+t.Name, newest[t.ID], want[t.Name])
	}
}
