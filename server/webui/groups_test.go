package webui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// consumed is a member that takes one event at a time: it rejects orders below 0, and holds on to order 7 until the test ends. Who
// has seen it hold knows that what came before is settled.
type consumed struct{ holds, free chan struct{} }

func (c *control) consume(group string, opts ...pawl.SubscribeOption) *consumed {
	m := &consumed{make(chan struct{}, 10), make(chan struct{})}
	pawl.Subscribe(c.e, group, "orders.*", func(ctx context.Context, e *pawl.Message[placed]) error {
		switch {
		case e.Data.Order < 0:
			return e.Reject("there is no such account")
		case e.Data.Order == 7:
			m.holds <- struct{}{}
			select {
			case <-m.free:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}, append([]pawl.SubscribeOption{pawl.InFlight(1), pawl.Fetch(1), pawl.Member("till-1")}, opts...)...)
	return m
}

// consuming is a control with a group that holds one event, has given up three and is two behind.
func consuming(t *testing.T, edit ...func(*setup)) (*control, []stream.PublishReply) {
	t.Helper()
	c := serve(t, edit...)
	m := c.consume("billing")
	c.run()
	t.Cleanup(func() { close(m.free) }) // before Run is stopped
	at := c.publish("orders.placed", -3, 0)
	c.publish("orders.placed", 7, 8)
	<-m.holds
	c.publish("orders.placed", 1, 3)
	return c, at
}

func (c *control) group(name string) pawl.GroupInfo {
	c.t.Helper()
	g, err := c.e.Group(name).Info(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return g
}

func TestU7_StreamsShowGroupsAndTheirLag(t *testing.T) {
	c, _ := consuming(t)
	b := open(t, c, "/streams")
	row := "table.consumers tbody tr:first-child"
	for _, text := range []string{"billing", "Parked", "orders.*"} {
		b.has(row, text)
	}
	b.wait(`[...document.querySelector("` + row + `").cells].slice(3, 8).map((c) => c.innerText.trim()).join() === "2,1,0,3,1"`)
	c.publish("orders.placed", 3, 4) // live
	b.has(row+" td:nth-child(4)", "3")
	b.clickText(row+" button", "Pause")
	b.has("#toasts", "billing is paused.")
	b.has(row, "Paused")
	b.clickText("#toasts .toast:last-child button", "Undo")
	b.has("#toasts", "billing takes events again.")
	b.has(row+" .st-dead", "Parked")
	b.accessible()
	b.shots("streams-groups")
	b.fitsAPhone()
	b.size(1440, 900)
	b.click(row + " a")
	b.has("h1", "billing")
	empty := open(t, serve(t), "/streams")
	empty.has("main", "No group yet.")
	empty.has("main", "pawl.Subscribe")
}

func TestU7_AGroupShowsItsLagMembersAndWhatIsParked(t *testing.T) {
	c, at := consuming(t)
	b := open(t, c, "/groups/billing")
	b.has("#group-head", "It is 2 events behind: 1 member works on 1.")
	b.has("#group-head", "works on 1. 3 events are parked.")
	b.has("table.members", "till-1")
	b.wait(`document.querySelectorAll("table.parked tbody tr").length === 3`)
	b.has("table.parked", "there is no such account")
	b.has("table.parked", `{"Order":-3}`)
	c.publish("orders.placed", 3, 4) // live
	b.has("#group-head", "It is 3 events behind")
	b.accessible()
	b.shots("group")
	b.fitsAPhone()
	b.size(1440, 900)
	b.click("table.parked tbody tr:nth-child(2) a")
	b.has("#event", at[1].ID)
	b.has("#event", `"Order"`)
	b.has("#group-open .why", "there is no such account")
	b.settled()
	b.accessible()
	b.shots("group-event")
	b.fitsAPhone()
	answer, err := http.Get(c.url + "/groups/none")
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a group that is not there: %s", answer.Status)
	}
}

func TestU7_ParkedEventsAreReplayed(t *testing.T) {
	c, _ := consuming(t)
	b := open(t, c, "/groups/billing")
	b.clickText("table.parked tbody tr:first-child button", "Replay")
	b.has("#toasts", "Replayed 1 event: billing gets it again.")
	b.wait(`document.querySelectorAll("table.parked tbody tr").length === 2`)
	if g := c.group("billing"); g.Parked != 2 || g.Waiting != 1 {
		t.Errorf("%+v", g)
	}
	b.has("#group-head", "1 event has failed or was given back and comes again.")
	b.clickText("#group-parked a", "Replay all…")
	b.has("#dialog", "Replay 2 parked events?")
	b.clickText("#dialog button", "Replay 2 events")
	b.has("#toasts", "Replayed 2 events")
	b.has("#group-parked", "Nothing is parked.")
	if g := c.group("billing"); g.Parked != 0 || g.Waiting != 3 {
		t.Errorf("%+v", g)
	}
	c.audited("replay group", "billing")
}

func TestU7_ManyParkedEventsNeedTheirNumberTyped(t *testing.T) {
	c := serve(t)
	m := c.consume("billing", pawl.InFlight(64), pawl.Fetch(64))
	c.run()
	t.Cleanup(func() { close(m.free) })
	c.publish("orders.placed", -501, 0)
	until(t, func() bool { g, err := c.e.Group("billing").Info(t.Context()); return err == nil && g.Parked == 501 })
	b := open(t, c, "/groups/billing")
	b.clickText("#group-parked a", "Replay all…")
	b.has("#dialog", "Type 501 to confirm")
	r := c.reader()
	_, text := r.do("GET", "/ask/group/replay-all?name=billing", nil)
	form := url.Values{"csrf": {tokenOf(t, text)}, "name": {"billing"}, "back": {"/groups/billing"}}
	if answer, text := r.do("POST", "/do/group/replay-all", form); answer.StatusCode != 422 || !strings.Contains(text, "Type 501") {
		t.Errorf("without its number: %s", answer.Status)
	}
	form.Set("typed", "501")
	if answer, text := r.do("POST", "/do/group/replay-all", form); answer.StatusCode != 422 || !strings.Contains(text, "need a note") {
		t.Errorf("without a note: %s", answer.Status)
	}
	if n := c.group("billing").Parked; n != 501 {
		t.Errorf("%d parked", n)
	}
	b.fill(`#dialog input[name=typed]`, "501")
	b.fill(`#dialog input[name=note]`, "the accounts are there now")
	b.clickText("#dialog button", "Replay 501 events")
	b.has("#toasts", "Replayed 501 events")
}

func TestU7_AGroupIsSoughtAndDeleted(t *testing.T) {
	c := serve(t)
	m := c.consume("billing")
	c.run()
	t.Cleanup(func() { close(m.free) })
	c.publish("orders.placed", 7, 8)
	<-m.holds
	m.free <- struct{}{}
	b := open(t, c, "/groups/billing")
	b.clickText("#group-head a", "Seek…")
	b.has("#dialog", "Put billing somewhere else?")
	b.expect("422")
	b.fill(`#dialog input[name=to]`, "tomorrow")
	b.clickText("#dialog button", "Put it there")
	b.has("#dialog .wrong", "It cannot be put at tomorrow.")
	b.fill(`#dialog input[name=to]`, "start")
	b.clickText("#dialog button", "Put it there")
	b.has("#toasts", "billing is at start now.")
	<-m.holds // it reads again
	m.free <- struct{}{}
	b.clickText("#group-head a", "Delete…")
	b.has("#dialog", "Delete billing for good?")
	b.clickText("#dialog button", "Delete the group")
	b.has("#toasts", "billing is deleted.")
	b.has("h1", "Streams")
	<-m.holds // who runs makes it anew
}

func TestU7_ADeadLetterIsReplayedFromItsTopic(t *testing.T) {
	c := serve(t)
	m := c.consume("billing", pawl.DeadLetter("dead.orders"))
	c.run()
	t.Cleanup(func() { close(m.free) })
	c.publish("orders.placed", -1, 0)
	c.publish("orders.placed", 7, 8)
	<-m.holds
	b := open(t, c, "/streams/dead.orders")
	b.click("#topic-rows tr:first-child a")
	b.has("#event", "there is no such account")
	b.clickText("#event button", "Replay to billing")
	b.has("#toasts", "Replayed 1 event: billing gets it again.")
	b.clickText("#event button", "Replay to billing")
	b.has("#toasts", "Nothing changed: it waits for billing already.")
	if g := c.group("billing"); g.Waiting != 1 {
		t.Errorf("%+v", g)
	}
}

func TestU7_AViewerSeesNoButtonOfGroups(t *testing.T) {
	c, at := consuming(t, as(auth.Viewer))
	b := open(t, c, "/streams")
	b.has("table.consumers", "billing")
	noButtons(b)
	b.visit("/groups/billing?open=" + at[0].Position.String())
	b.has("#event", "Order")
	b.has("table.parked", "there is no such account")
	noButtons(b)
}

func TestU7_GroupsHidePayloads(t *testing.T) {
	c, at := consuming(t, func(s *setup) {
		s.who = auth.Func(func(*http.Request) (auth.Identity, error) {
			return auth.Identity{Name: "guest", Role: auth.Viewer, Hidden: true}, nil
		})
	})
	b := open(t, c, "/groups/billing?open="+at[1].Position.String())
	b.has("#event", "Data and headers are hidden for you.")
	b.has("table.parked", "order--2")
	if whole := eval[string](b, "document.documentElement.outerHTML"); contains(whole, "north") || contains(whole, "Order&quot;") || contains(whole, `"Order"`) {
		t.Error("a payload is on the page")
	}
}

func TestU7_HostileGroupsAreShownAsText(t *testing.T) {
	c := serve(t)
	key := strings.NewReplacer("\x07", "", "\x1b", "").Replace(hostile)
	name, topic := strings.ReplaceAll(key, "/", "")[:66], "a.<script\"'&lt;\u202Etxt"
	settled := make(chan struct{}, 10)
	pawl.Subscribe(c.e, name, topic, func(_ context.Context, m *pawl.Message[pawl.Raw]) error {
		if len(m.Event.Data) == 0 {
			settled <- struct{}{}
			return nil
		}
		return m.Reject(hostile + strings.Repeat("x", 3000))
	}, pawl.InFlight(1), pawl.Fetch(1), pawl.Member(name))
	c.run()
	for _, data := range []pawl.Raw{pawl.Raw(hostile + strings.Repeat("x", 50_000)), {0xff, 0xfe, 0}, {}} {
		if _, err := c.e.Publish(t.Context(), topic, data, pawl.Key(key), pawl.EventType(key), pawl.ContentType(key)); err != nil {
			t.Fatal(err)
		}
	}
	<-settled
	parked, err := c.e.Group(name).Parked(t.Context(), pawl.ParkedAfter{}, 10)
	if err != nil || len(parked) != 2 {
		t.Fatalf("%d parked: %v", len(parked), err)
	}
	b := open(t, c, "/streams")
	address := eval[string](b, `document.querySelector("table.consumers a").getAttribute("href")`)
	for _, path := range []string{"/streams", address, address + "?open=" + parked[0].Event.Position.String(), address + "?raw=1&open=" + parked[1].Event.Position.String()} {
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
	b.has("table.parked", "⟨RLO⟩txt.exe")
}

func (a *asked) ListGroups(ctx context.Context, after string, n int) ([]store.GroupInfo, error) {
	a.noteGroups("groups", n)
	return a.Store.ListGroups(ctx, after, n)
}

func (a *asked) GroupNamed(ctx context.Context, name string) (store.GroupInfo, error) {
	a.noteGroups("group", 1)
	return a.Store.GroupNamed(ctx, name)
}

func (a *asked) GroupMembers(ctx context.Context, name string, after int64, n int) ([]store.MemberInfo, error) {
	a.noteGroups("members", n)
	return a.Store.GroupMembers(ctx, name, after, n)
}

func (a *asked) ParkedEvents(ctx context.Context, name string, after store.ParkedAfter, n int) ([]stream.Parked, error) {
	a.noteGroups("parked", n)
	return a.Store.ParkedEvents(ctx, name, after, n)
}

// noteGroups notes a call, and each row that it may answer with.
func (a *asked) noteGroups(call string, rows int) {
	a.note(call)
	for range rows {
		a.note("rows of " + call)
	}
}

// However many groups, members and parked events there are, a page asks for as many. How far a lag is counted is the store's bound.
func TestU7_PagesOfGroupsAskForFewRows(t *testing.T) {
	a, e := askedEngine(t)
	done := make(chan struct{}, 1000)
	for n := range 40 {
		pawl.Subscribe(e, fmt.Sprintf("g%02d", n), "t.*", func(context.Context, *pawl.Message[pawl.Raw]) error {
			done <- struct{}{}
			return nil
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if _, err := e.Publish(t.Context(), "t.a", placed{1}); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		<-done
	}
	for path, most := range map[string]map[string]int{
		"/streams": {"groups": 1, "rows of groups": 25}, "/streams?group=g24": {"groups": 1, "rows of groups": 25},
		"/groups/g07": {"group": 1, "members": 1, "rows of members": 50, "parked": 1, "rows of parked": 25},
	} {
		calls, _ := a.forPage(t, e, path)
		for call, n := range most {
			if calls[call] > n || calls[call] == 0 {
				t.Errorf("%s: %d %s, at most %d", path, calls[call], call, n)
			}
		}
	}
}
