package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// maybeHidden lets everybody in, payloads hidden from who says so.
var maybeHidden = auth.Func(func(r *http.Request) (auth.Identity, error) {
	return auth.Identity{Name: "ann", Role: auth.Admin, Hidden: r.Header.Get("Hidden") != ""}, nil
})

func TestU2_EventsArePublishedAndRead(t *testing.T) {
	s := serve(t, maybeHidden)
	var out httpapi.Published
	s.call("POST", "/api/v1/topics/orders.placed/events", `{"data":{"order":7},"key":"order-7","type":"Placed","source":"shop",
		"headers":{"a":"b"},"correlation":"c","causation":"d","ttl":"1h"}`, 201, &out)
	s.call("POST", "/api/v1/topics/orders.shipped/events", `{"events":[{"data_base64":"AAH/","content_type":"x/y"},
		{"data":"text"},{"data_base64":"e30=","content_type":"application/cloudevents+json; charset=utf-8"},{"data_base64":"ew==","content_type":"application/json"},{}]}`, 201, nil)
	if len(out.Events) != 1 || out.Events[0].ID == "" {
		t.Fatalf("%+v", out)
	}
	var l httpapi.EventList
	s.call("GET", "/api/v1/events?topic=orders.*", "", 200, &l)
	if len(l.Events) != 6 || l.More || l.Next != l.Events[5].Position {
		t.Fatalf("%+v", l)
	}
	e := l.Events[0]
	if e.ID != out.Events[0].ID || e.Position != out.Events[0].Position || e.Topic != "orders.placed" || e.Key != "order-7" || e.Type != "Placed" ||
		e.Source != "shop" || e.Headers["a"] != "b" || e.Correlation != "c" || e.Causation != "d" || !e.Expires.Equal(e.Appended.Add(time.Hour)) ||
		e.ContentType != "application/json" || string(e.Data) != `{"order":7}` || e.Base64 != nil {
		t.Errorf("%+v", e)
	}
	for i, want := range []struct{ data, bytes string }{{"", "\x00\x01\xff"}, {`"text"`, ""}, {"{}", ""}, {"", "{"}, {"", ""}} {
		if e := l.Events[i+1]; string(e.Data) != want.data || string(e.Base64) != want.bytes {
			t.Errorf("event %d: %s, %q", i+1, e.Data, e.Base64)
		}
	}
	for query, n := range map[string]int{
		"key=order-7": 1, "key_prefix=order-": 1, "type=Placed": 1, "source=shop": 1, "source=else": 0, "topic=orders.shipped": 5, "from=end": 0,
		"from=2020-01-01T00:00:00Z": 6, "from=2090-01-01T00:00:00Z": 0, "from=start": 6, "after=" + e.Position: 5, "order=newest&limit=1": 1,
	} {
		var some httpapi.EventList
		if s.call("GET", "/api/v1/events?"+query, "", 200, &some); len(some.Events) != n {
			t.Errorf("%s: %d events, want %d", query, len(some.Events), n)
		}
	}
	var hidden httpapi.EventList
	s.call("GET", "/api/v1/events?limit=1", "", 200, &hidden, "Hidden", "yes")
	if e := hidden.Events[0]; e.Data != nil || e.Headers != nil || e.Key != "order-7" {
		t.Errorf("shown to somebody from whom payloads are hidden: %+v", e)
	}
}

func TestU2_EventsArePaged(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	var want []string
	for i := range 1200 {
		want = append(want, fmt.Sprint(i))
	}
	var items []pawl.EventItem
	for i, key := range want {
		items = append(items, pawl.NewEvent(fmt.Sprint("t.", i%3), pawl.Raw(key), pawl.Key(key), pawl.ContentType("application/json")))
	}
	if _, err := s.e.PublishMany(t.Context(), items...); err != nil {
		t.Fatal(err)
	}
	pages := func(query string) (keys []string, n int) {
		t.Helper()
		for after := ""; ; n++ {
			var l httpapi.EventList
			s.call("GET", "/api/v1/events?"+query+"&after="+after, "", 200, &l)
			for _, e := range l.Events {
				keys = append(keys, e.Key)
			}
			if !l.More {
				return keys, n + 1
			}
			after = l.Next
		}
	}
	if got, n := pages("limit=500"); !slices.Equal(got, want) || n != 3 {
		t.Errorf("%d events in %d pages", len(got), n)
	}
	got, _ := pages("limit=333&order=newest")
	if slices.Reverse(got); !slices.Equal(got, want) {
		t.Errorf("backwards: %d events", len(got))
	}
	if got, n := pages("key=1150"); !slices.Equal(got, []string{"1150"}) || n != 2 { // a page visits 1,000 rows
		t.Errorf("%v in %d pages", got, n)
	}
	large := pawl.Raw(strings.Repeat("x", 3<<20))
	for range 4 {
		if _, err := s.e.Publish(t.Context(), "large", large); err != nil {
			t.Fatal(err)
		}
	}
	var l httpapi.EventList
	if s.call("GET", "/api/v1/events?topic=large", "", 200, &l); len(l.Events) != 3 || !l.More {
		t.Errorf("%d events of 3 MiB in a page, more: %v", len(l.Events), l.More)
	}
}

func TestU2_TopicsAreListed(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	for i := range 5 {
		s.call("POST", fmt.Sprintf("/api/v1/topics/orders.%d/events", i), `{}`, 201, nil)
	}
	s.call("POST", "/api/v1/topics/a%2Fb/events", `{}`, 201, nil)
	var names []string
	for after := ""; ; {
		var l httpapi.TopicList
		s.call("GET", "/api/v1/topics?limit=2&after="+after, "", 200, &l)
		for _, topic := range l.Topics {
			if names = append(names, topic.Name); topic.Newest.IsZero() {
				t.Errorf("%+v", topic)
			}
		}
		if after = l.Next; after == "" {
			break
		}
	}
	if want := []string{"a/b", "orders.0", "orders.1", "orders.2", "orders.3", "orders.4"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	var l httpapi.TopicList
	if s.call("GET", "/api/v1/topics?pattern=orders.*", "", 200, &l); len(l.Topics) != 5 {
		t.Errorf("%+v", l)
	}
}

func TestU2_ARepeatedPublishPublishesOnce(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	var first, again httpapi.Published
	for _, out := range []*httpapi.Published{&first, &again} {
		s.call("POST", "/api/v1/topics/t/events", `{"data":1}`, 201, out, idempotency, "k")
	}
	if !slices.Equal(first.Events, again.Events) {
		t.Errorf("%+v and %+v", first, again)
	}
	s.refused("POST", "/api/v1/topics/t/events", `{"data":2}`, 422, "key-reused", "k", idempotency, "k")
	var l httpapi.EventList
	if s.call("GET", "/api/v1/events", "", 200, &l); len(l.Events) != 1 {
		t.Errorf("%d events", len(l.Events))
	}
}

func TestU2_BadInputAboutEventsIsRefused(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	if _, err := s.e.Cursor(t.Context(), "c", stream.Filter{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, body, detail string }{
		{"POST", "/topics/a.*/events", `{}`, "topic"},
		{"POST", "/topics/a..b/events", `{}`, "dot"},
		{"POST", "/topics/a/events", `{"data":1,"data_base64":"AAA="}`, "data_base64"},
		{"POST", "/topics/a/events", `{"data_base64":"?"}`, "data_base64"},
		{"POST", "/topics/a/events", `{"events":[]}`, "events"},
		{"POST", "/topics/a/events", `{"events":[{}],"key":"x"}`, "beside"},
		{"POST", "/topics/a/events", `{"events":[{},{"ttl":"-1s"}]}`, "ttl"},
		{"POST", "/topics/a/events", `{"ttl":"0s"}`, "time to live"},
		{"POST", "/topics/a/events", `{"color":"red"}`, "color"},
		{"GET", "/topics?pattern=a*", "", "topic"},
		{"GET", "/topics?after=x", "", "cursor"},
		{"GET", "/events?topic=a..b", "", "dot"},
		{"GET", "/events?after=x", "", "position"},
		{"GET", "/events?from=yesterday", "", "from"},
		{"GET", "/events?from=start&after=x", "", "without after"},
		{"GET", "/events?from=start&order=newest", "", "newest"},
		{"GET", "/events?limit=1001", "", "limit"},
		{"GET", "/events/stream?after=x", "", "position"},
		{"GET", "/events/stream?from=yesterday", "", "from"},
		{"POST", "/cursors/c/seek", `{"to":"yesterday"}`, "to"},
		{"POST", "/cursors/c/seek", `{}`, "to"},
		{"GET", "/cursors?limit=101", "", "limit"},
	} {
		s.refused(c.method, "/api/v1"+c.path, c.body, 422, "invalid", c.detail)
	}
	foreign := stream.At(7, 1).String()
	for _, path := range []string{"/events?after=" + foreign, "/events?order=newest&after=" + foreign, "/events/stream?after=" + foreign} {
		s.refused("GET", "/api/v1"+path, "", 409, "position-unknown", "position")
	}
	s.refused("POST", "/api/v1/cursors/c/seek", `{"to":"`+foreign+`"}`, 409, "position-unknown", "position")
	for _, c := range [][2]string{{"GET", "/cursors/none"}, {"DELETE", "/cursors/none"}} {
		s.refused(c[0], "/api/v1"+c[1], "", 404, "not-found", "none")
	}
	s.refused("POST", "/api/v1/cursors/none/seek", `{"to":"end"}`, 404, "not-found", "none")
}

func TestU2_ACursorIsReadSoughtAndDeleted(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	c, err := s.e.Cursor(t.Context(), "sums", stream.Filter{Topic: "orders.*"})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/api/v1/cursors/sums"
	var now httpapi.Cursor
	if s.call("GET", path, "", 200, &now); !now.CaughtUp || now.Filter.Topic != "orders.*" || now.Position != "" || !now.Moved.IsZero() {
		t.Errorf("%+v", now)
	}
	var out httpapi.Published
	s.call("POST", "/api/v1/topics/orders.placed/events", `{"events":[{"data":1},{"data":2},{"data":3}]}`, 201, &out)
	now = httpapi.Cursor{}
	if s.call("GET", path, "", 200, &now); now.CaughtUp || now.Behind.IsZero() {
		t.Errorf("%+v", now)
	}
	b, err := c.Poll(t.Context(), 10)
	if err == nil {
		err = b.Commit(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	now = httpapi.Cursor{}
	if s.call("GET", path, "", 200, &now); !now.CaughtUp || now.Position != out.Events[2].Position || now.Moved.IsZero() {
		t.Errorf("%+v", now)
	}
	now = httpapi.Cursor{}
	s.call("POST", path+"/seek", `{"to":"`+out.Events[0].Position+`"}`, 200, &now, "Pawl-Note", "because")
	if now.Position != out.Events[0].Position || now.CaughtUp || now.Behind.IsZero() {
		t.Errorf("%+v", now)
	}
	s.audited("sums", "seek cursor", "")
	for to, position := range map[string]string{"start": "", "end": out.Events[2].Position, "2020-01-01T00:00:00Z": ""} {
		now = httpapi.Cursor{}
		if s.call("POST", path+"/seek", `{"to":"`+to+`"}`, 200, &now); now.Position != position {
			t.Errorf("%s: %+v", to, now)
		}
	}
	if _, err := s.e.Cursor(t.Context(), "others", stream.Filter{}); err != nil {
		t.Fatal(err)
	}
	var l httpapi.CursorList
	if s.call("GET", "/api/v1/cursors?limit=1", "", 200, &l); len(l.Cursors) != 1 || l.Cursors[0].Name != "others" || l.Next == "" {
		t.Errorf("%+v", l)
	}
	next := l.Next
	l = httpapi.CursorList{}
	if s.call("GET", "/api/v1/cursors?after="+next, "", 200, &l); len(l.Cursors) != 1 || l.Cursors[0].Name != "sums" || l.Next != "" {
		t.Errorf("%+v", l)
	}
	s.call("DELETE", path, "", 204, nil, "Pawl-Note", "because")
	s.audited("sums", "delete cursor", "")
	s.refused("GET", path, "", 404, "not-found", "sums")
}

// follow opens a stream of the log.
func (p *piped) follow(query, last string) *reader {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), "GET", "http://pipe/api/v1/events/stream?"+query, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", last)
	answer, err := p.client.Do(r)
	if err != nil || answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		p.t.Fatalf("%s: %v %v", query, answer, err)
	}
	return newReader(p.t, answer.Body)
}

func (p *piped) publish(topic string, n int) {
	p.t.Helper()
	var items []pawl.EventItem
	for i := range n {
		items = append(items, pawl.NewEvent(topic, i))
	}
	if _, err := p.e.PublishMany(p.t.Context(), items...); err != nil {
		p.t.Fatal(err)
	}
}

func TestU4_EventsOfTheLogAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := servePiped(t, httpapi.Options{})
		defer p.close()
		p.publish("orders.placed", 3)
		r := p.follow("topic=orders.*", "") // from the end
		p.publish("mails", 2)
		p.publish("orders.placed", 300)
		var at []string
		for i := range 300 {
			m := r.next()
			e := want[httpapi.Event](t, m, "event")
			if e.Position != m.id || string(e.Data) != fmt.Sprint(i) {
				t.Fatalf("event %d: %+v", i, e)
			}
			at = append(at, m.id)
		}
		began := time.Now()
		if m := r.next(); m.name != ":" || time.Since(began) != 5*time.Second {
			t.Errorf("%+v after %s", m, time.Since(began))
		}
		r.close()
		r = p.follow("source=nobody&from=start", "")
		if m := r.next(); m.name != ":" || m.id != at[299] { // nothing for it: but it is told how far it has come
			t.Errorf("%+v, want %s", m, at[299])
		}
		r.close()
		r = p.follow("topic=orders.*&from=start", at[297]) // who comes back misses nothing
		for _, want := range at[298:] {
			if m := r.next(); m.id != want {
				t.Errorf("%+v, want %s", m, want)
			}
		}
		began = time.Now()
		for m := r.next(); m.name != "end"; m = r.next() {
		}
		if took := time.Since(began); took != 10*time.Minute {
			t.Errorf("it ended after %s", took)
		}
		r.close()
		r = p.follow("topic=orders.*&from=start", "")
		if e := want[httpapi.Event](t, r.next(), "event"); string(e.Data) != "0" {
			t.Errorf("%+v", e)
		}
		r.close()
	})
}

func TestU4_StreamsOfTheLogAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := servePiped(t, httpapi.Options{Streams: 1})
		defer p.close()
		slow, err := p.net.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(slow, "GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it reads nothing
		for _, path := range []string{"/events/stream", "/watch?subject=overview"} {
			answer, err := p.client.Get("http://pipe/api/v1" + path)
			if err != nil {
				t.Fatal(err)
			}
			var problem httpapi.Problem
			if err := json.NewDecoder(answer.Body).Decode(&problem); err != nil || problem.Kind != "too-many-requests" {
				t.Errorf("%s: %+v %v", path, problem, err)
			}
			answer.Body.Close()
		}
		time.Sleep(21 * time.Second) // virtual: past the time for a write
		r := p.follow("from=start", "")
		p.publish("t", 1)
		want[httpapi.Event](t, r.next(), "event")
		r.close()
		slow.Close()
	})
}

func TestU4_AStreamHidesPayloads(t *testing.T) {
	s := serve(t, maybeHidden)
	s.call("POST", "/api/v1/topics/t/events", `{"data":{"secret":1},"headers":{"secret":"2"}}`, 201, nil)
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/api/v1/events/stream?from=start", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Hidden", "yes")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	m := newReader(t, answer.Body).next()
	if e := want[httpapi.Event](t, m, "event"); e.Data != nil || e.Headers != nil || e.Base64 != nil || strings.Contains(m.data, "secret") {
		t.Errorf("%s", m.data)
	}
}

// Why events cannot be read yet is told: by the transaction that has published and is open, where
// a store lets readers wait for one.
func TestU2_WhatReadersWaitForIsTold(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	const path = "/api/v1/events/why"
	var now httpapi.EventHolders
	if s.call("GET", path, "", 200, &now); len(now.Holders) != 0 || now.Holders == nil {
		t.Errorf("%+v", now)
	}
	_, waits := s.e.Store().(store.LogHolders)
	err := s.e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
		if _, err := tx.Publish(ctx, "orders.placed", 7); err != nil {
			return err
		}
		if s.call("GET", path, "", 200, &now); !waits {
			return nil
		}
		if len(now.Holders) != 1 {
			t.Fatalf("%+v", now)
		}
		h := now.Holders[0]
		if h.PID == 0 || h.User == "" || h.State != "idle in transaction" || h.Began.IsZero() || !strings.Contains(h.Text, fmt.Sprint("pid ", h.PID)) {
			t.Errorf("%+v", h)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	now = httpapi.EventHolders{}
	if s.call("GET", path, "", 200, &now); len(now.Holders) != 0 {
		t.Errorf("%+v", now)
	}
}

func TestE18_TopicsAreSetAndShown(t *testing.T) {
	s := serve(t, maybeHidden)
	var holds httpapi.EffectiveTopic
	s.call("PATCH", "/api/v1/topics/orders.*/settings", `{"versioned":true,"keep_for":"720h","keep_count":5}`, 200, &holds)
	if holds.Name != "orders.*" || holds.Holds.KeepFor != "720h0m0s" || *holds.Holds.KeepCount != 5 || holds.By != "ann" {
		t.Errorf("%+v", holds)
	}
	var out httpapi.Published
	s.call("POST", "/api/v1/topics/orders.placed/events", `{"events":[{"key":"k","expect":"none"},{"key":"k","expect":"1"},{"key":"k","in":"1h"}]}`, 201, &out)
	if e := out.Events; e[0].Version != 1 || e[1].Version != 2 || !e[2].Delayed || e[2].Position != "" {
		t.Errorf("%+v", out)
	}
	s.refused("POST", "/api/v1/topics/orders.placed/events", `{"key":"k","expect":"1"}`, 409, "version-conflict", "has version 2")
	s.refused("POST", "/api/v1/topics/orders.placed/events", `{"key":"k","expect":"0"}`, 422, "invalid", "expect")
	s.refused("POST", "/api/v1/topics/mails/events", `{"expect":"none"}`, 422, "invalid", "expected version")
	s.refused("POST", "/api/v1/topics/mails/events", `{"in":"1h","at":"2090-01-01T00:00:00Z"}`, 422, "invalid", "in \"1h\"")
	var status httpapi.TopicStatus
	s.call("GET", "/api/v1/topics/orders.placed", "", 200, &status)
	if !status.Versioned || status.Delayed != 1 || *status.Settings.Holds.KeepCount != 5 || status.Settings.Name != "orders.placed" {
		t.Errorf("%+v", status)
	}
	s.call("DELETE", "/api/v1/topics/orders.*/settings?field=keep_for", "", 200, &holds)
	holds = httpapi.EffectiveTopic{} // what is left out stays as it was
	s.call("GET", "/api/v1/topics/orders.placed/settings", "", 200, &holds)
	if holds.Holds.KeepFor != "" || *holds.Holds.KeepCount != 5 {
		t.Errorf("%+v", holds)
	}
	s.refused("GET", "/api/v1/topics/none", "", 404, "not-found", "none")
	s.refused("PATCH", "/api/v1/topics/a/settings", `{"keep_for":"1ms"}`, 422, "invalid", "KeepFor")
	s.refused("PATCH", "/api/v1/topics/a/settings", `{"keep_count":0}`, 422, "invalid", "keep_count")
	s.refused("PATCH", "/api/v1/topics/a/settings", `{}`, 422, "invalid", "TopicSettings")
}
