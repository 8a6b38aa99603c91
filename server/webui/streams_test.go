package webui_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

type placed struct{ Order int }

// publish publishes orders to a topic.
func (c *control) publish(topic string, from, to int) (at []stream.PublishReply) {
	c.t.Helper()
	var items []pawl.EventItem
	for i := from; i < to; i++ {
		items = append(items, pawl.NewEvent(topic, placed{i}, pawl.Key(fmt.Sprint("order-", i)), pawl.Headers(map[string]string{"shop": "north"})))
	}
	at, err := c.e.PublishMany(c.t.Context(), items...)
	if err != nil {
		c.t.Fatal(err)
	}
	return at
}

// streaming is a control with a topic, a cursor that is behind and one that has caught up.
func streaming(t *testing.T, edit ...func(*setup)) (*control, []stream.PublishReply) {
	t.Helper()
	c := serve(t, edit...)
	at := c.publish("orders.placed", 0, 60)
	c.publish("orders.shipped", 0, 1)
	for _, name := range []string{"behind", "level"} {
		if _, err := c.e.Cursor(t.Context(), name, stream.Filter{Topic: "orders.*"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.e.SeekCursor(operating(t.Context(), "caught up"), "level", stream.FromEnd()); err != nil {
		t.Fatal(err)
	}
	return c, at
}

func TestU7_StreamsShowTopicsAndWhatIsLeftOfCursors(t *testing.T) {
	c, _ := streaming(t)
	b := open(t, c, "/streams")
	b.has("table.topics", "orders.placed")
	b.has("table.topics", "orders.shipped")
	b.has("table.cursors", "next unread event")
	b.has("table.cursors tr:nth-child(2)", "caught up")
	c.publish("orders.returned", 0, 1) // live
	b.has("table.topics", "orders.returned")
	b.wait(`!document.querySelector("table.cursors").innerText.includes("caught up")`)
	b.accessible()
	b.shots("streams")
	b.fitsAPhone()
	b.visit("/streams?topic=orders.s*")
	b.has("main", "This is no pattern")
	b.visit("/streams?topic=*.shipped")
	b.wait(`document.querySelectorAll("table.topics tbody tr").length === 1`)
	b.visit("/streams?topic=none")
	b.has("main", "No topic matches")
	empty := open(t, serve(t), "/streams")
	empty.has("main", "Nothing has been published yet.")
	empty.has("main", "No cursor yet.")
}

func TestU7_ATopicShowsEventsAndGoesOnLive(t *testing.T) {
	c, at := streaming(t)
	b := open(t, c, "/streams/orders.placed")
	b.has("h1", "orders.placed")
	b.wait(`document.querySelectorAll("#topic-rows tr").length === 50`)
	b.has("#topic-rows tr:first-child", `{"Order":59}`)
	b.has("#topic-rows tr:first-child", "order-59")
	c.publish("orders.placed", 60, 61)
	b.has("#topic-rows tr:first-child", `{"Order":60}`)
	b.accessible()
	b.shots("topic")
	b.click(`a[data-step=older]`)
	b.has("h2", "Older events")
	b.settled()
	b.has("#topic-rows", `{"Order":0}`)
	b.visit("/streams/orders.placed?open=" + at[7].Position.String())
	b.has("#event", `"Order"`)
	b.has("#event", at[7].ID)
	b.has("#event", "Header shop")
	b.has("#event", "north")
	b.accessible()
	b.shots("topic-event")
	b.fitsAPhone()
	b.size(1440, 900)
	b.clickText("#event a", "Text")
	b.has("#event pre", `{"Order":7}`)
	b.settled()
	answer, err := http.Get(c.url + "/streams/orders.none")
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a topic that is not there: %s", answer.Status)
	}
}

func TestU7_ACursorIsSoughtAndDeleted(t *testing.T) {
	c, at := streaming(t)
	b := open(t, c, "/streams")
	row := ".cursors tbody tr:first-child"
	b.clickText(row+" a", "Seek…")
	b.has("#dialog", "Put behind somewhere else?")
	b.expect("422")
	b.fill(`#dialog input[name=to]`, "tomorrow")
	b.clickText("#dialog button", "Put it there")
	b.has("#dialog .wrong", "It cannot be put at tomorrow.")
	b.fill(`#dialog input[name=to]`, at[9].Position.String())
	b.clickText("#dialog button", "Put it there")
	b.has("#toasts", "behind is at "+at[9].Position.String()+" now.")
	i, err := c.e.CursorNamed(t.Context(), "behind")
	if err != nil || !i.At.Equal(at[9].Position) {
		t.Errorf("%+v %v", i, err)
	}
	b.clickText("#toasts .toast:last-child button", "Undo")
	b.has("#toasts", "behind is at start now.")
	b.clickText(row+" a", "Delete…")
	b.has("#dialog", "Delete behind for good?")
	b.clickText("#dialog button", "Delete the cursor")
	b.has("#toasts", "behind is deleted.")
	b.wait(`document.querySelectorAll(".cursors tbody tr").length === 1`)
	if _, err := c.e.CursorNamed(t.Context(), "behind"); err == nil {
		t.Error("it is there")
	}
}

func TestU7_AViewerSeesNoButtonOfCursors(t *testing.T) {
	c, at := streaming(t, as(auth.Viewer))
	b := open(t, c, "/streams")
	b.has("table.cursors", "behind")
	noButtons(b)
	b.visit("/streams/orders.placed?open=" + at[0].Position.String())
	b.has("#event", "Order")
	noButtons(b)
}

func TestU7_HostileEventsAreShownAsText(t *testing.T) {
	c := serve(t)
	const topic = "a.<script\"'&lt;\u202Etxt"
	key := strings.NewReplacer("\x07", "", "\x1b", "").Replace(hostile)
	long := strings.Repeat("x", 100_000)
	for _, data := range []pawl.Raw{pawl.Raw(hostile + long), pawl.Raw(`{"` + strings.Repeat("k", 500) + `":"<script>window.hacked=1</script>"}`), {0xff, 0xfe, 0}} {
		if _, err := c.e.Publish(t.Context(), topic, data, pawl.Key(key), pawl.EventType(key), pawl.Source(key),
			pawl.Headers(map[string]string{key[:66]: hostile + long[:2000]}), pawl.ContentType(key)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.e.Cursor(t.Context(), key[:66], stream.Filter{Topic: topic, Key: key}); err != nil {
		t.Fatal(err)
	}
	page, err := c.e.LastEvents(t.Context(), stream.Filter{}, stream.Position{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/streams", "/streams?topic=%3Cscript%3E"}
	b := open(t, c, "/streams")
	address := eval[string](b, `document.querySelector("table.topics a").getAttribute("href")`)
	paths = append(paths, address)
	for i := range page.Events {
		paths = append(paths, address+"?open="+page.Events[i].Position.String(), address+"?raw=1&open="+page.Events[i].Position.String())
	}
	for _, path := range paths {
		b.visit(path)
		for _, width := range []int64{1440, 390} {
			b.size(width, 844)
			if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > int(width) {
				t.Errorf("%s is %d wide on %d", path, wide, width)
			}
		}
		if eval[bool](b, `"hacked" in window || !!document.querySelector("main script, main img")`) {
			t.Errorf("%s: it ran", path)
		}
	}
	b.has("#event", "⟨RLO⟩txt.exe")
}

func TestU7_EventsHidePayloads(t *testing.T) {
	c, at := streaming(t, func(s *setup) {
		s.who = auth.Func(func(*http.Request) (auth.Identity, error) {
			return auth.Identity{Name: "guest", Role: auth.Viewer, Hidden: true}, nil
		})
	})
	b := open(t, c, "/streams/orders.placed?open="+at[3].Position.String())
	b.has("#event", "Data and headers are hidden for you.")
	b.has("#topic-rows", "order-59")
	if whole := eval[string](b, "document.documentElement.outerHTML"); contains(whole, "north") || contains(whole, "Order&quot;") || contains(whole, `"Order"`) {
		t.Error("a payload is on the page")
	}
}

func (a *asked) Events(ctx context.Context, of store.EventQuery) (store.EventPage, error) {
	page, err := a.Store.Events(ctx, of)
	a.visited("events", page)
	return page, err
}

func (a *asked) EventsBack(ctx context.Context, of store.EventQuery) (store.EventPage, error) {
	page, err := a.Store.EventsBack(ctx, of)
	a.visited("events", page)
	return page, err
}

// visited notes a call, and each row that it visited.
func (a *asked) visited(call string, page store.EventPage) {
	a.note(call)
	for range page.Visited {
		a.note("rows of " + call)
	}
}

// However many events there are, a page visits as many rows.
func TestU7_PagesOfStreamsVisitFewRows(t *testing.T) {
	a, e := askedEngine(t)
	for n := range 30 {
		if _, err := e.Cursor(t.Context(), fmt.Sprint("c", n), stream.Filter{Topic: "t.*", Key: "none"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, events := range []int{1000, 2000} {
		var items []pawl.EventItem
		for range events {
			items = append(items, pawl.NewEvent("t.a", placed{1}))
		}
		if _, err := e.PublishMany(t.Context(), items...); err != nil {
			t.Fatal(err)
		}
		for path, most := range map[string][2]int{fmt.Sprintf("/streams?cursor=a%d", events): {25, 25 * 100}, "/streams/t.a": {1, 50}} {
			calls, _ := a.forPage(t, e, path)
			asked, rows := calls["events"], calls["rows of events"]
			if asked > most[0] || rows > most[1] || rows == 0 {
				t.Errorf("%s among %d events: %d questions, %d rows", path, events, asked, rows)
			}
		}
	}
}
