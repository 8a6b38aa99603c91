package streamtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/stream"
)

func publishing() []testCase {
	return []testCase{
		{"E2_WhatIsPublishedIsDelivered", publishedIsDelivered},
		{"E2_AllOrNone", allOrNone},
		{"E2_AnIDIsAcceptedOnce", idsOnce},
		{"E2_AnIDIsForgottenAfterItsWindow", idsForgotten},
		{"E3_ExpectedVersions", versions},
		{"E4_ADelayedEventComesWhenItIsDue", delayed},
		{"E4_ATimeToLiveCountsFromDelivery", timeToLive},
	}
}

func publishedIsDelivered(l *lab) {
	when := time.Date(2026, 11, 16, 12, 0, 0, 123_456_000, time.UTC)
	full := event("orders.größer", "id-1", func(e *stream.Publication) {
		e.Key, e.Type, e.Source, e.ContentType, e.Schema = "ключ", "order", "/shop", "application/json", 3
		e.Time, e.Expires = when, when.AddDate(100, 0, 0)
		e.Headers, e.Correlation, e.Causation = map[string]string{"a": "b\nc"}, "c-1", "c-0"
		e.Trace, e.Data = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", []byte{0, 1, 255}
	})
	replies := l.publish(full, event("orders.placed", "id-2"), event("orders.placed", "id-3"))
	m := l.join(membership("all", ">"))
	got := m.need(3)
	for i, d := range got {
		equal(l, "position", d.Event.Position, replies[i].Position)
		equal(l, "id", d.Event.ID, replies[i].ID)
		equal(l, "counts", []int{d.Failures, d.Losses}, []int{0, 0})
		if d.Event.Appended.IsZero() || d.Alone || d.Bad != nil {
			l.Errorf("%+v", d)
		}
	}
	want := full.Event
	want.Position, want.Appended = got[0].Event.Position, got[0].Event.Appended
	equal(l, "event", *got[0].Event, want)
	got[0].Event.Data[0] = 9 // a handler's own
	m.next(0, m.say("id-1", stream.Released))
	equal(l, "the data of another delivery", m.need(1)[0].Event.Data, full.Data)
}

func allOrNone(l *lab) {
	_, err := l.Backend.Publish(l.ctx, []stream.Publication{event("a", "1"), event("a..b", "2")})
	l.refused("a wrong topic", "topic", err)
	l.publish(event("a", "3"))
	equal(l, "delivered", l.join(membership("g", ">")).drain(9), []string{"3"})
}

func given(p *stream.Publication) { p.Given = true }

func keyed(key string) func(*stream.Publication) {
	return func(p *stream.Publication) { p.Idempotency = key }
}

func idsOnce(l *lab) {
	if !l.features.IDs {
		_, err := l.Backend.Publish(l.ctx, []stream.Publication{event("a", "1", given)})
		l.refused("an id", "id", err)
		return
	}
	first := l.publish(
		event("a", "1", given), event("a", "1", given), event("a", "2", keyed("k")), event("a", "3", keyed("k"), given))
	for i, want := range []bool{false, true, false, true} {
		equal(l, fmt.Sprint("duplicate ", i), first[i].Duplicate, want)
	}
	equal(l, "id of the first", first[3].ID, "2")
	again := l.publish(event("a", "1", given), event("a", "3", given), event("a", "9", keyed("k")))
	equal(l, "of before", again[0], stream.PublishReply{ID: "1", Position: first[0].Position, Duplicate: true})
	equal(l, "the key stands before the id", again[1].ID, "2")
	equal(l, "another id with the key", again[2].Position, first[2].Position)
	if r := l.publish(event("b", "1", given), event("b", "5", keyed("k"))); r[0].Duplicate || r[1].Duplicate {
		l.Error("an id of one topic is taken for that of another")
	}
	l.publish(event("a", "4"), event("a", "4")) // not chosen by the caller: two events
	equal(l, "delivered", l.join(membership("g", ">")).drain(1), []string{"1", "2", "1", "5", "4", "4"})
}

func idsForgotten(l *lab) {
	if l.Window == 0 {
		return
	}
	l.publish(event("a", "1", given))
	l.Pass(l.Window - time.Second)
	if r := l.publish(event("a", "1", given)); !r[0].Duplicate {
		l.Error("within its window an id was accepted twice")
	}
	l.Pass(2 * time.Second)
	if r := l.publish(event("a", "1", given)); r[0].Duplicate {
		l.Error("an id is remembered past its window, or each look extends it")
	}
}

func versions(l *lab) {
	put := func(id string, x stream.Expect) (stream.PublishReply, error) {
		topic := l.Versioned
		if topic == "" {
			topic = "plain"
		}
		p := event(topic, id, given, withKey("k"))
		p.Expect = x
		r, err := l.Backend.Publish(l.ctx, []stream.Publication{p})
		if err != nil {
			return stream.PublishReply{}, err
		}
		return r[0], nil
	}
	if !l.features.Versions {
		expects := func(p *stream.Publication) { p.Expect = stream.NoStream() }
		_, err := l.Backend.Publish(l.ctx, []stream.Publication{event("a", "1", expects)})
		l.refused("a version", "expected version", err)
		return
	}
	for i, c := range []struct {
		id   string
		x    stream.Expect
		want int64 // 0: refused
	}{
		{"a", stream.Version(1), 0}, {"a", stream.NoStream(), 1}, {"b", stream.NoStream(), 0}, {"b", stream.Version(1), 2},
		{"c", stream.AnyVersion(), 3}, {"a", stream.NoStream(), 1}, {"d", stream.Version(2), 0},
	} {
		r, err := put(c.id, c.x)
		if c.want == 0 && !errors.Is(err, stream.ErrVersion) || c.want > 0 && (err != nil || r.Version != c.want) {
			l.Errorf("%d: %s with %v: %+v, %v", i, c.id, c.x, r, err)
		}
	}
}

func delayed(l *lab) {
	later := func(d time.Duration) func(*stream.Publication) { return func(p *stream.Publication) { p.In = d } }
	if !l.features.Delay {
		_, err := l.Backend.Publish(l.ctx, []stream.Publication{event("a", "1", later(time.Second))})
		l.refused("a delay", "delivery time", err)
		return
	}
	m := l.join(membership("g", ">"))
	r := l.publish(event("a", "3", later(3*time.Second)), event("a", "1", later(time.Second)), event("a", "0"))
	equal(l, "replies", []bool{r[0].Delayed, r[0].Position.IsZero(), r[2].Delayed}, []bool{true, true, false})
	since := watch()
	var ids []string
	for len(ids) < 3 {
		for _, d := range m.need(1) {
			ids = append(ids, d.Event.ID)
			due := map[string]time.Duration{"1": time.Second, "3": 3 * time.Second}[d.Event.ID]
			if took := since(); took < due-50*time.Millisecond {
				l.Errorf("%s came after %v, before %v", d.Event.ID, took, due)
			}
		}
	}
	equal(l, "delivered", ids, []string{"0", "1", "3"})
}

func timeToLive(l *lab) {
	l.publish(event("a", "1", func(p *stream.Publication) { p.TTL = time.Hour }))
	e := l.join(membership("g", ">")).need(1)[0].Event
	if got := e.Expires.Sub(e.Appended); got != time.Hour {
		l.Errorf("it lives for %v", got)
	}
}
