package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/stream"
)

// subscribed is a member of a group that takes one event at a time: it rejects those whose data is "bad", and holds on to those
// whose data is "hold". Who has seen it hold knows that what came before is settled.
type subscribed struct {
	*pawl.Subscription
	holds chan string
	free  chan struct{} // closed when it may go on
}

// leave lets it go on, and ends its membership.
func (m *subscribed) leave(t *testing.T) {
	t.Helper()
	close(m.free)
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func (s *served) subscribe(group string, opts ...pawl.SubscribeOption) *subscribed {
	m := &subscribed{holds: make(chan string, 10), free: make(chan struct{})}
	m.Subscription = pawl.Subscribe(s.e, group, "orders.*", func(ctx context.Context, e *pawl.Message[pawl.Raw]) error {
		switch string(e.Data) {
		case `"bad"`:
			return e.Reject("there is no such account")
		case `"hold"`:
			m.holds <- e.ID
			select {
			case <-m.free:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}, append([]pawl.SubscribeOption{pawl.InFlight(1), pawl.Fetch(1), pawl.Member("one")}, opts...)...)
	return m
}

const threeBad = `{"events":[{"data":"bad","key":"a"},{"data":"bad","key":"b"},{"data":"bad","key":"c"},{"data":"hold"}]}`

func TestU2_AGroupIsReadPausedReplayedAndSought(t *testing.T) {
	s := serve(t, maybeHidden)
	billing := s.subscribe("billing")
	audit := s.subscribe("audit", pawl.Ordered())
	s.run()
	var out httpapi.Published
	s.call("POST", "/api/v1/topics/orders.placed/events", threeBad, 201, &out)
	<-billing.holds
	<-audit.holds
	s.call("POST", "/api/v1/topics/orders.placed/events", `{"events":[{"data":1},{"data":2}]}`, 201, nil)

	const path = "/api/v1/groups/billing"
	read := func() (g httpapi.Group) {
		t.Helper()
		s.call("GET", path, "", 200, &g)
		return g
	}
	g := read()
	if g.Mode != "competing" || g.Filter.Topic != "orders.*" || g.Paused || g.Members != 1 || g.Open != 1 || g.Parked.Events != 3 ||
		g.Behind != (httpapi.EventCount{Events: 2}) || g.Waiting.Events != 0 || g.Position != out.Events[3].Position || g.Undone != out.Events[3].Position {
		t.Errorf("%+v", g)
	}
	var l httpapi.GroupList
	if s.call("GET", "/api/v1/groups?limit=1", "", 200, &l); len(l.Groups) != 1 || l.Groups[0].Name != "audit" || l.Groups[0].Mode != "ordered" || l.Next == "" {
		t.Errorf("%+v", l)
	}
	next := l.Next
	l = httpapi.GroupList{}
	if s.call("GET", "/api/v1/groups?after="+next, "", 200, &l); len(l.Groups) != 1 || l.Groups[0].Name != "billing" || l.Groups[0].Behind.Events != 2 || l.Next != "" {
		t.Errorf("%+v", l)
	}
	var members httpapi.MemberList
	s.call("GET", "/api/v1/groups/audit/members?limit=1", "", 200, &members)
	if m := members.Members; len(m) != 1 || m[0].Name != "one" || m[0].Open != 1 || m[0].Stripes != 64 || m[0].Worker == 0 || m[0].Turns < 4 || members.Next == "" {
		t.Errorf("%+v", members)
	}
	next = members.Next
	members = httpapi.MemberList{}
	if s.call("GET", "/api/v1/groups/audit/members?after="+next, "", 200, &members); len(members.Members) != 0 || members.Next != "" {
		t.Errorf("%+v", members)
	}

	var p httpapi.ParkedList
	s.call("GET", path+"/parked?limit=2", "", 200, &p)
	if len(p.Parked) != 2 || p.Next == "" || p.Parked[0].Reason != "there is no such account" || string(p.Parked[0].Event.Data) != `"bad"` ||
		p.Parked[1].Event.Key != "b" || p.Parked[1].Event.Position != out.Events[1].Position || p.Parked[0].Parked.IsZero() || p.Parked[0].Gone {
		t.Errorf("%+v", p)
	}
	next = p.Next
	p = httpapi.ParkedList{}
	if s.call("GET", path+"/parked?limit=2&after="+next, "", 200, &p, "Hidden", "yes"); len(p.Parked) != 1 || p.Next != "" ||
		p.Parked[0].Event.Key != "c" || p.Parked[0].Event.Data != nil {
		t.Errorf("%+v", p)
	}

	replay := func(body string, want httpapi.ReplayReply) {
		t.Helper()
		var r httpapi.ReplayReply
		if s.call("POST", path+"/replay", body, 200, &r, "Pawl-Note", "because"); r != want {
			t.Errorf("%s: %+v", body, r)
		}
	}
	replay(fmt.Sprintf(`{"positions":[%q,%q]}`, out.Events[1].Position, out.Events[3].Position), httpapi.ReplayReply{Replayed: 1})
	s.audited("billing", "replay group", "1 event")
	if g := read(); g.Parked.Events != 2 || g.Waiting.Events != 1 { // its only slot is held
		t.Errorf("%+v", g)
	}
	replay(`{"all":true}`, httpapi.ReplayReply{Replayed: 2})
	replay(`{"all":true}`, httpapi.ReplayReply{})

	for verb, paused := range map[string]bool{"pause": true, "resume": false} {
		var now httpapi.Group
		if s.call("POST", path+"/pause", "", 200, nil); verb == "resume" {
			s.call("POST", path+"/resume", "", 200, &now, "Pawl-Note", "because")
		} else {
			s.call("POST", path+"/pause", "", 200, &now, "Pawl-Note", "because")
		}
		if s.audited("billing", verb+" group", ""); now.Paused != paused {
			t.Errorf("%s: %+v", verb, now)
		}
	}
	s.call("POST", path+"/pause", "", 200, nil)
	billing.leave(t)
	audit.leave(t)
	for to, behind := range map[string]int{out.Events[0].Position: 5, "end": 0, "2020-01-01T00:00:00Z": 6, "start": 6} {
		var now httpapi.Group
		s.call("POST", path+"/seek", fmt.Sprintf(`{"to":%q}`, to), 200, &now, "Pawl-Note", "because")
		if s.audited("billing", "seek group", ""); now.Behind.Events != behind || now.Waiting.Events != 0 {
			t.Errorf("%s: %+v", to, now)
		}
	}
	s.call("DELETE", "/api/v1/groups/audit", "", 204, nil, "Pawl-Note", "because")
	s.audited("audit", "delete group", "")
	s.refused("GET", "/api/v1/groups/audit", "", 404, "not-found", "audit")
}

func TestU2_DeadLettersOfATopicAreReplayed(t *testing.T) {
	s := serve(t, maybeHidden)
	billing := s.subscribe("billing", pawl.DeadLetter("dead.orders"))
	s.run()
	var out httpapi.Published
	s.call("POST", "/api/v1/topics/orders.placed/events", threeBad, 201, &out)
	<-billing.holds
	defer billing.leave(t)
	var l httpapi.EventList
	if s.call("GET", "/api/v1/events?topic=dead.orders", "", 200, &l); len(l.Events) != 3 || l.Events[0].Headers[stream.DeadGroup] != "billing" {
		t.Fatalf("%+v", l)
	}
	const path = "/api/v1/groups/billing/replay"
	letters := func(topic string, at ...string) string {
		return fmt.Sprintf(`{"letters":{"topic":%q,"positions":["%s"]}}`, topic, strings.Join(at, `","`))
	}
	var r httpapi.ReplayReply
	s.call("POST", path, letters("dead.orders", l.Events[0].Position, l.Events[2].Position), 200, &r, "Pawl-Note", "because")
	if s.audited("billing", "replay group", "2 events"); r.Replayed != 2 {
		t.Errorf("%+v", r)
	}
	s.refused("POST", path, letters("orders.placed", l.Events[0].Position), 404, "not-found", "orders.placed")
	s.refused("POST", path, letters("orders.placed", out.Events[0].Position), 422, "invalid", "must be of the group billing") // it is no letter
	s.refused("POST", "/api/v1/groups/none/replay", letters("dead.orders", l.Events[0].Position), 422, "invalid", "must be of the group none")
}

func TestU2_BadInputAboutGroupsIsRefused(t *testing.T) {
	s := serve(t, maybeHidden)
	at := stream.At(7, 1).String()
	for _, c := range []struct{ method, path, body, detail string }{
		{"GET", "/groups?limit=101", "", "limit"},
		{"GET", "/groups?after=x", "", "cursor"},
		{"GET", "/groups?after=" + encode(`"\u0000"`), "", "control"},
		{"GET", "/groups/g/members?after=" + encode(`"x"`), "", "cursor"},
		{"GET", "/groups/g/parked?limit=0", "", "limit"},
		{"GET", "/groups/g/parked?after=x", "", "cursor"},
		{"GET", "/groups/g/parked?after=" + encode(`{"At":"0001-01-01T00:00:00+23:59","Seq":1}`), "", "after"},
		{"POST", "/groups/g/replay", `{}`, "one of them"},
		{"POST", "/groups/g/replay", `{"all":false}`, "one of them"},
		{"POST", "/groups/g/replay", `{"all":true,"positions":["` + at + `"]}`, "one of them"},
		{"POST", "/groups/g/replay", `{"positions":[]}`, "positions"},
		{"POST", "/groups/g/replay", `{"positions":["x"]}`, "position"},
		{"POST", "/groups/g/replay", `{"positions":[""]}`, "position"},
		{"POST", "/groups/g/replay", `{"letters":{"topic":"a.*","positions":["` + at + `"]}}`, "topic"},
		{"POST", "/groups/g/replay", `{"letters":{"topic":"a"}}`, "positions"},
		{"POST", "/groups/g/seek", `{"to":"yesterday"}`, "to"},
		{"POST", "/groups/g/seek", `{}`, "to"},
		{"GET", "/groups/%01", "", "control"},
		{"DELETE", "/groups/%01", "", "control"},
	} {
		s.refused(c.method, "/api/v1"+c.path, c.body, 422, "invalid", c.detail)
	}
	for _, c := range [][3]string{
		{"GET", "", ""}, {"GET", "/members", ""}, {"GET", "/parked", ""}, {"DELETE", "", ""}, {"POST", "/pause", ""}, {"POST", "/resume", ""},
		{"POST", "/seek", `{"to":"end"}`}, {"POST", "/replay", `{"all":true}`},
	} {
		s.refused(c[0], "/api/v1/groups/none"+c[1], c[2], 404, "not-found", "none")
	}
	billing := s.subscribe("billing")
	s.run()
	s.call("POST", "/api/v1/topics/orders.placed/events", `{"data":"hold"}`, 201, nil)
	<-billing.holds
	defer billing.leave(t)
	s.refused("POST", "/api/v1/groups/billing/seek", `{"to":"`+at+`"}`, 409, "position-unknown", "position")
}
