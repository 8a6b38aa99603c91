package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// events is every case about the log.
func events() []testCase {
	return []testCase{
		{name: "E1_AnEventComesBackAsItWas", run: eventComesBack},
		{name: "E1_EventsThatAreAlikeAreThemselves", run: alikeEvents},
		{name: "E2_ManyKeepTheirOrder", run: eventsKeepOrder},
		{name: "E2_AllOrNone", run: eventsAllOrNone},
		{name: "P10_APageHasABound", run: eventsRefused},
		{name: "E5_ACursorSeesEachOnce", run: cursorSeesOnce},
		{name: "E5_FiltersAndPatterns", run: eventFilters},
		{name: "E5_AfterTheEndComeNewOnes", run: afterTheEnd},
		{name: "E5_WritersAndReadersTogether", needs: Features{Shared: true}, run: writersAndReaders},
		{name: "E6_APositionOfAnotherLogIsRefused", run: foreignPositions},
		{name: "E5_TopicsAreListed", run: topicsListed},
		{name: "E5_ALogIsReadFromItsEnd", run: readBack},
		{name: "E5_ATopicTellsItsNewestEvent", run: newestEvents},
		{name: "P3_EventsCommitWithTheTransaction", run: eventsInTx},
		{name: "J29_EventsAreTheNamespacesOwn", needs: Features{Shared: true}, run: eventsApart},
	}
}

// log is the store as one that keeps events.
func (d *database) log(s store.Store) store.Log {
	d.Helper()
	l, ok := s.(store.Log)
	if !ok {
		d.Fatalf("%T is no store.Log", s)
	}
	return l
}

// event is one that says little.
func event(topic, id string, edit ...func(*stream.Publication)) stream.Publication {
	e := stream.Publication{Event: stream.Event{ID: id, Topic: topic}}
	for _, f := range edit {
		f(&e)
	}
	return e
}

func someEvents(topic string, n int) (list []stream.Publication) {
	for i := range n {
		list = append(list, event(topic, fmt.Sprintf("%s-%d", topic, i)))
	}
	return list
}

func (d *database) publish(drafts ...stream.Publication) []stream.PublishReply {
	d.Helper()
	for i := range drafts {
		if err := drafts[i].Check(stream.Bounds{}); err != nil {
			d.Fatal(err)
		}
	}
	return must[[]stream.PublishReply](d, "append")(d.log(d.Store).Append(d.ctx, drafts))
}

// logReader reads on from where it is.
type logReader struct {
	d     *database
	log   store.Log
	match stream.Matcher
	at    stream.Position
}

func (d *database) cursor(s store.Store, f stream.Filter) *logReader {
	d.Helper()
	return &logReader{d: d, log: d.log(s), match: must[stream.Matcher](d, "filter")(f.Matcher())}
}

// poll reads a page.
func (c *logReader) poll(limit int) store.EventPage {
	c.d.Helper()
	page := must[store.EventPage](c.d, "events")(c.log.Events(c.d.ctx, store.EventQuery{Match: c.match, After: c.at, Limit: limit}))
	if page.Visited > limit || len(page.Events) > page.Visited {
		c.d.Errorf("%d rows visited for %d events, at most %d", page.Visited, len(page.Events), limit)
	}
	c.at = page.Next
	return page
}

// all are the ids of what is left.
func (c *logReader) all(limit int) (ids []string) {
	c.d.Helper()
	for {
		page := c.poll(limit)
		for _, e := range page.Events {
			ids = append(ids, e.ID)
		}
		if !page.More {
			return ids
		}
	}
}

func idsOf(drafts []stream.Publication) (ids []string) {
	for i := range drafts {
		ids = append(ids, drafts[i].ID)
	}
	return ids
}

// alikeEvents hands in events together of which all but the middle one say the same: a store may keep or send what
// repeats once, and must not give it to another.
func alikeEvents(d *database) {
	when := time.Date(2026, 11, 16, 12, 0, 0, 123_456_000, time.UTC)
	plain := event("alike", "")
	rich := event("alike", "", func(e *stream.Publication) {
		e.Key, e.Type, e.Source, e.ContentType, e.Schema, e.Data = "key", "type", "source", "text/plain", 3, []byte("data")
		e.Time, e.Expires, e.Correlation = when, when.AddDate(100, 0, 0), "correlation"
	})
	middles := []func(*stream.Publication){
		func(*stream.Publication) {},
		func(e *stream.Publication) { e.Topic = "alike.other" },
		func(e *stream.Publication) { e.Key = "another" },
		func(e *stream.Publication) { e.Key = "" },
		func(e *stream.Publication) { e.Type = "another" },
		func(e *stream.Publication) { e.Type = "" },
		func(e *stream.Publication) { e.Source, e.ContentType = "another", "text/html" },
		func(e *stream.Publication) { e.Source, e.ContentType = "", "" },
		func(e *stream.Publication) { e.Schema = 4 },
		func(e *stream.Publication) { e.Schema = 0 },
		func(e *stream.Publication) { e.Data = []byte("another") },
		func(e *stream.Publication) { e.Data = nil },
		func(e *stream.Publication) { e.Time = when.Add(time.Hour) },
		func(e *stream.Publication) { e.Expires = when.AddDate(50, 0, 0) },
		func(e *stream.Publication) { e.Expires = time.Time{} },
		func(e *stream.Publication) { e.Expires, e.TTL = time.Time{}, time.Hour },
		func(e *stream.Publication) { e.Headers, e.Correlation = map[string]string{"a": "b"}, "another" },
		func(e *stream.Publication) { e.Correlation = "" },
	}
	for _, base := range []stream.Publication{plain, rich} {
		for n, edit := range middles {
			var drafts []stream.Publication
			for i := range 3 {
				drafts = append(drafts, base)
				drafts[i].ID = fmt.Sprint(i)
			}
			edit(&drafts[1])
			receipts := d.publish(drafts...)
			equal(d, "receipts", len(receipts), 3)
			reader := d.cursor(d.Store, stream.Filter{})
			reader.at = receipts[0].Position
			rest := reader.poll(10).Events
			equal(d, fmt.Sprintf("events behind the first of %d", n), len(rest), 2)
			for i, got := range rest {
				want := drafts[i+1]
				equal(d, "position", got.Position, receipts[i+1].Position)
				if want.Time.IsZero() {
					want.Time = got.Appended
				}
				if want.TTL > 0 {
					want.Expires = got.Appended.Add(want.TTL)
				}
				want.Position, want.Appended = got.Position, got.Appended
				if !bytes.Equal(got.Data, want.Data) || fmt.Sprintf("%+v", sameForms(got)) != fmt.Sprintf("%+v", sameForms(want.Event)) {
					d.Errorf("case %d, event %d: %+v, want %+v", n, i+1, got, want.Event)
				}
			}
		}
	}
}

// sameForms is an event whose times print alike, without its data.
func sameForms(e stream.Event) stream.Event {
	e.Time, e.Expires, e.Appended, e.Data = e.Time.UTC().Truncate(time.Microsecond), e.Expires.UTC(), e.Appended.UTC(), nil
	return e
}

func eventComesBack(d *database) {
	when := time.Date(2026, 11, 16, 12, 0, 0, 123_456_000, time.UTC)
	full := event("orders.größer", "id-1", func(e *stream.Publication) {
		e.Key, e.Type, e.Source, e.ContentType, e.Schema = "ключ", "order", "/shop", "application/json", 3
		e.Time, e.Expires = when, when.AddDate(100, 0, 0)
		e.Headers, e.Correlation, e.Causation = map[string]string{"a": "b\nc", "ü": ""}, "c-1", "c-0"
		e.Trace, e.TraceState, e.Data = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x=1", []byte{0, 1, 255}
	})
	empty := event("orders.placed", "id-2")
	large := event("orders.placed", "id-3", func(e *stream.Publication) { e.Data = bytes.Repeat([]byte("x"), stream.DefaultData) })
	soon := event("orders.placed", "id-4", func(e *stream.Publication) { e.TTL = time.Minute })
	before := d.now()
	receipts := d.publish(full, empty, large, soon)
	after := d.now()
	page := d.cursor(d.Store, stream.Filter{}).poll(10)
	equal(d, "events", len(page.Events), 4)
	for i, want := range []stream.Publication{full, empty, large, soon} {
		got := page.Events[i]
		equal(d, "position", got.Position, receipts[i].Position)
		equal(d, "id of the receipt", receipts[i].ID, want.ID)
		if got.Appended.Before(before) || got.Appended.After(after) {
			d.Errorf("appended at %v, not between %v and %v", got.Appended, before, after)
		}
		want.Position, want.Appended = got.Position, got.Appended
		if want.Time.IsZero() {
			want.Time = got.Appended
		}
		if want.TTL > 0 {
			want.Expires = got.Appended.Add(want.TTL)
		}
		if !bytes.Equal(got.Data, want.Data) {
			d.Errorf("event %s has other data", want.ID)
		}
		want.Data, got.Data = nil, nil // megabytes, and none of a nil slice
		equal(d, "event "+want.ID, got, want.Event)
	}
}

func eventsKeepOrder(d *database) {
	var list []stream.Publication
	for i := range 300 {
		list = append(list, event(fmt.Sprint("t.", i%7), fmt.Sprint(i)))
	}
	receipts := d.publish(list...)
	for i := 1; i < len(receipts); i++ {
		if order, ok := receipts[i-1].Position.Compare(receipts[i].Position); !ok || order >= 0 {
			d.Fatalf("%s is not before %s", receipts[i-1].Position.Debug(), receipts[i].Position.Debug())
		}
	}
	equal(d, "read", d.cursor(d.Store, stream.Filter{}).all(64), idsOf(list))
}

// One that the store cannot take keeps all of its call out, and nobody else's.
func eventsAllOrNone(d *database) {
	bad := append(someEvents("a", 3), event("a", "not \x00 text"))
	if _, err := d.log(d.Store).Append(d.ctx, bad); err == nil {
		return // this store takes it
	}
	equal(d, "read", d.cursor(d.Store, stream.Filter{}).all(64), []string(nil))
	d.publish(event("a", "good"))
	equal(d, "read", d.cursor(d.Store, stream.Filter{}).all(64), []string{"good"})
}

func eventsRefused(d *database) {
	_, err := d.log(d.Store).Events(d.ctx, store.EventQuery{Limit: store.MaxEventPage + 1})
	if !errors.Is(err, job.ErrInvalid) {
		d.Errorf("a page that is too large: %v", err)
	}
}

// The first event is seen, and none twice at the borders of pages, whatever their size.
func cursorSeesOnce(d *database) {
	list := append(someEvents("a", 7), someEvents("b", 6)...)
	d.publish(list...)
	for limit := 1; limit <= 14; limit++ {
		equal(d, fmt.Sprint("all by ", limit), d.cursor(d.Store, stream.Filter{}).all(limit), idsOf(list))
		equal(d, fmt.Sprint("b by ", limit), d.cursor(d.Store, stream.Filter{Topic: "b"}).all(limit), idsOf(list[7:]))
		equal(d, fmt.Sprint("* by ", limit), d.cursor(d.Store, stream.Filter{Topic: "*"}).all(limit), idsOf(list))
	}
}

func eventFilters(d *database) {
	noon := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	var list []stream.Publication
	for i := range 60 {
		list = append(list, event(fmt.Sprintf("shop%d.orders.%d", i%2, i%3), fmt.Sprint(i), func(e *stream.Publication) {
			e.Key, e.Type, e.Source, e.Time = fmt.Sprint("k", i%5), fmt.Sprint("type", i%4), fmt.Sprint("src", i%2), noon.Add(time.Duration(i)*time.Second)
		}))
	}
	d.publish(list...)
	for _, f := range []stream.Filter{
		{}, {Topic: "shop0.orders.1"}, {Topic: "*.orders.2"}, {Topic: "shop1.>"}, {Topic: "shop0.orders.*"}, {Topic: "none.>"}, {Topic: "shop0"},
		{Key: "k3"}, {KeyPrefix: "k"}, {KeyPrefix: "x"}, {Type: "type1"}, {Source: "src1", Type: "type2"},
		{After: noon.Add(10 * time.Second), Before: noon.Add(20 * time.Second)}, {Topic: "shop1.>", Key: "k1"},
	} {
		m := must[stream.Matcher](d, "filter")(f.Matcher())
		var want []string
		for i := range list {
			if m.Match(&list[i].Event) {
				want = append(want, list[i].ID)
			}
		}
		equal(d, fmt.Sprintf("%+v", f), d.cursor(d.Store, f).all(7), want)
	}
}

func afterTheEnd(d *database) {
	c := d.cursor(d.Store, stream.Filter{Topic: "a.*"})
	equal(d, "nothing yet", c.all(5), []string(nil))
	d.publish(someEvents("a.x", 3)...)
	equal(d, "the first", c.all(5), idsOf(someEvents("a.x", 3)))
	equal(d, "nothing new", c.all(5), []string(nil))
	d.publish(someEvents("b", 20)...)
	equal(d, "others", c.all(5), []string(nil))
	d.publish(someEvents("a.y", 2)...)
	equal(d, "of a topic that is new", c.all(5), idsOf(someEvents("a.y", 2)))
	head := must[stream.Position](d, "head")(d.log(d.Store).Head(d.ctx))
	if order, ok := c.at.Compare(head); !ok || order > 0 {
		d.Errorf("it is at %s, the head at %s", c.at.Debug(), head.Debug())
	}
}

func foreignPositions(d *database) {
	d.publish(someEvents("a", 3)...)
	head := must[stream.Position](d, "head")(d.log(d.Store).Head(d.ctx))
	for name, at := range map[string]stream.Position{
		"of another epoch": stream.At(head.Epoch()+1, 1),
		"behind the log":   stream.At(head.Epoch(), head.Seq()+1_000_000),
	} {
		if _, err := d.log(d.Store).Events(d.ctx, store.EventQuery{After: at}); !errors.Is(err, store.ErrPosition) {
			d.Errorf("a position %s: %v", name, err)
		}
	}
}

func topicsListed(d *database) {
	d.publish(event("orders.b", "1"), event("orders.a", "2"), event("mails", "3"), event("orders.a", "4"), event("orders.a.x", "5"))
	names := func(pattern, after string, n int) (list []string) {
		p := must[stream.TopicPattern](d, "pattern")(stream.ParsePattern("topic", pattern))
		for _, t := range must[[]store.TopicInfo](d, "topics")(d.log(d.Store).Topics(d.ctx, p, after, n)) {
			list = append(list, t.Name)
		}
		return list
	}
	equal(d, "all", names(">", "", 10), []string{"mails", "orders.a", "orders.a.x", "orders.b"})
	equal(d, "of a pattern", names("orders.*", "", 10), []string{"orders.a", "orders.b"})
	equal(d, "after one", names(">", "orders.a", 1), []string{"orders.a.x"})
	equal(d, "none", names("none.>", "", 10), []string(nil))
}

func eventsInTx(d *database) {
	c := d.cursor(d.Store, stream.Filter{})
	d.inTx(func(tx store.Tx) error {
		in, ok := tx.(store.TxLog)
		if !ok {
			d.Fatalf("%T is no store.TxLog", tx)
		}
		receipts, err := in.Append(d.ctx, someEvents("a", 2))
		if err == nil {
			equal(d, "receipts", []string{receipts[0].ID, receipts[1].ID}, []string{"a-0", "a-1"})
			_, err = in.Append(d.ctx, someEvents("b", 1))
		}
		return err
	})
	equal(d, "committed", c.all(10), []string{"a-0", "a-1", "b-0"})

	tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
	if _, err := tx.(store.TxLog).Append(d.ctx, someEvents("c", 2)); err != nil {
		d.Error(err)
	}
	if err := tx.Rollback(d.ctx); err != nil {
		d.Error(err)
	}
	equal(d, "rolled back", c.all(10), []string(nil))
	d.publish(event("a", "later"))
	equal(d, "and later", c.all(10), []string{"later"})
}

func eventsApart(d *database) {
	other := d.open(store.Settings{Namespace: "other"})
	d.publish(someEvents("a", 3)...)
	if _, err := d.log(other).Append(d.ctx, someEvents("b", 2)); err != nil {
		d.Fatal(err)
	}
	d.publish(event("a", "last"))
	equal(d, "ours", d.cursor(d.Store, stream.Filter{}).all(2), []string{"a-0", "a-1", "a-2", "last"})
	equal(d, "theirs", d.cursor(other, stream.Filter{}).all(2), []string{"b-0", "b-1"})
	equal(d, "by topic", d.cursor(other, stream.Filter{Topic: "a"}).all(2), []string(nil))
}

// Two stores append and two read, all at the same time: each reader sees each event once,
// and those of one writer in their order.
func writersAndReaders(d *database) {
	const each = 200
	stores := []store.Store{d.Store, d.open(store.Settings{})}
	var writing, reading sync.WaitGroup
	ended := make(chan struct{})
	for w, s := range stores {
		log := d.log(s)
		writing.Go(func() {
			for i := range each {
				if _, err := log.Append(d.ctx, []stream.Publication{event(fmt.Sprint("t", i%3), fmt.Sprintf("%d-%03d", w, i))}); err != nil {
					d.Error(err)
					return
				}
			}
		})
	}
	for _, s := range stores {
		c := d.cursor(s, stream.Filter{})
		reading.Go(func() {
			var seen []string
			for over := false; !over; {
				select {
				case <-ended:
					over = true
				default:
				}
				seen = append(seen, c.all(16)...)
			}
			sorted := slices.Clone(seen)
			slices.SortStableFunc(sorted, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
			if !slices.IsSorted(sorted) {
				d.Error("events of a writer came out of order")
			}
			if n := len(slices.Compact(sorted)); n != 2*each || len(seen) != 2*each {
				d.Errorf("%d events were seen, %d of them different, want %d", len(seen), n, 2*each)
			}
		})
	}
	writing.Wait()
	close(ended)
	reading.Wait()
}
