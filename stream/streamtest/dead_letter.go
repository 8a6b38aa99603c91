package streamtest

import (
	"strings"
	"time"

	"github.com/pawlwork/pawl/stream"
)

func deadLetters() []testCase {
	return []testCase{
		{"E11_ADeadLetterSaysEverything", letterSaysEverything},
		{"E11_WithoutATopicItIsParked", parked},
		{"E11_AnEventIsDeadInItsGroupOnly", deadInItsGroup},
		{"E12_ABadEntryKeepsItsBytes", badEntry},
	}
}

var full = event("orders.placed", "id-1", func(e *stream.Publication) {
	e.Key, e.Type, e.Source, e.ContentType, e.Schema = "k", "order", "/shop", "image/png", 3
	e.Time = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	e.Headers, e.Data = map[string]string{"own": "header"}, []byte{0, 1, 255}
})

func letterSaysEverything(l *lab) {
	at := l.publish(full)[0].Position
	m := l.join(membership("g", "orders.*", lettersTo("dead.orders")))
	m.need(1)
	m.next(0, m.say("id-1", stream.Retried))
	m.need(1)
	s := m.say("id-1", stream.Dead)
	s.Reason, s.Failures = "it is \x00 bad "+strings.Repeat("ü", 9000), 2
	m.next(0, s)
	m.quiet("it is dead")
	d := l.join(membership("readers", "dead.>")).need(1)[0] // it was stored with the settlement
	h := d.Event.Headers
	for name, want := range map[string]string{
		"own": "header", stream.DeadTopic: "orders.placed", stream.DeadGroup: "g", stream.DeadID: "id-1", stream.DeadFailures: "2",
		stream.DeadLosses: "0", stream.DeadPosition: at.String(), stream.DeadTime: "2026-11-16T12:00:00Z",
	} {
		equal(l, name, h[name], want)
	}
	if !strings.HasPrefix(h[stream.DeadReason], "it is \uFFFD bad üü") || len(h[stream.DeadReason]) > 5000 {
		l.Errorf("reason %.40q of %d bytes", h[stream.DeadReason], len(h[stream.DeadReason]))
	}
	e := d.Event
	equal(l, "event", []any{e.Topic, e.Key, e.Type, e.Source, e.ContentType, e.Schema, string(e.Data), e.Causation},
		[]any{"dead.orders", "k", "order", "/shop", "image/png", 3, "\x00\x01\xff", "id-1"})
	if e.Time.Equal(full.Time) || e.Time.IsZero() {
		l.Errorf("given up at %v", e.Time)
	}
}

func parked(l *lab) {
	at := l.publish(full)[0].Position
	m := l.join(membership("g", "orders.*"))
	m.need(1)
	s := m.say("id-1", stream.Dead)
	s.Reason, s.Failures = "bad", 1
	m.next(0, s)
	m.quiet("it is parked")
	list := l.Parked(l, "g")
	if len(list) != 1 {
		l.Fatalf("%d are parked", len(list))
	}
	p := list[0]
	e := p.Event
	equal(l, "parked", []any{p.Group, p.Reason, p.Failures, p.Losses}, []any{"g", "bad", 1, 0})
	equal(l, "event", []string{e.ID, e.Topic, e.Key, string(e.Data), e.Headers["own"]},
		[]string{"id-1", "orders.placed", "k", "\x00\x01\xff", "header"})
	if p.At.IsZero() || !p.Event.Position.Equal(at) {
		l.Errorf("at %v, %s", p.At, p.Event.Position.Debug())
	}
	equal(l, "of another group", len(l.Parked(l, "other")), 0)
	if err := m.feed.Leave(l.ctx, nil); err != nil {
		l.Error(err)
	}
	equal(l, "while nobody is there", len(l.Parked(l, "g")), 1)
}

func deadInItsGroup(l *lab) {
	l.publish(full)
	a, b := l.join(membership("a", "orders.*")), l.join(membership("b", "orders.*"))
	a.need(1)
	a.next(0, a.say("id-1", stream.Dead))
	d := b.need(1)[0]
	equal(l, "failures", d.Failures, 0)
	equal(l, "parked", len(l.Parked(l, "b")), 0)
}

func badEntry(l *lab) {
	if l.PutBad == nil {
		return // nothing that it keeps can be unreadable
	}
	l.publish(event("a", "1"))
	l.PutBad(l, "a", "k", []byte{0, 255, 'x'})
	l.publish(event("a", "2"))
	m := l.join(membership("g", "a"))
	got := m.need(3)
	bad := got[1]
	if bad.Bad == nil || got[0].Bad != nil || got[2].Bad != nil || string(bad.Event.Data) != "\x00\xffx" {
		l.Fatalf("%+v", got)
	}
	m.next(0, stream.Settlement{Ref: bad.Ref, Verdict: stream.Dead, Reason: bad.Bad.Error()})
	list := l.Parked(l, "g")
	if len(list) != 1 || string(list[0].Event.Data) != "\x00\xffx" || list[0].Reason == "" {
		l.Errorf("parked: %+v", list)
	}
}
