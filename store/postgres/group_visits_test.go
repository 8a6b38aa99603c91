package postgres

import (
	"fmt"
	"testing"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// visitLab is a long log, and members whose turns are counted.
type visitLab struct {
	t    testing.TB
	s    *Store
	sent *sentStatements
}

// fillLog appends events of a busy topic, and now and then one of a rare one.
func fillLog(t testing.TB, s *Store, n int) {
	t.Helper()
	for from := 0; from < n; from += 1000 {
		list := make([]stream.Publication, 1000)
		for i := range list {
			list[i] = stream.Publication{Event: stream.Event{ID: fmt.Sprint(from + i), Topic: "busy", Key: fmt.Sprint("k", i%50)}}
		}
		if from%5000 == 0 {
			list[500].Topic = "rare"
		}
		if _, err := s.Append(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// turn makes one that acks what it had, and counts the events that it visits.
func (l *visitLab) turn(p *player, n int) (got, visited int) {
	l.t.Helper()
	h := p.feed.Hand()
	text := func(format string, args ...any) string { return l.s.pg.SQL(fmt.Sprintf(format, args...)) }
	var upto int64
	err := l.sent.Pool.QueryRow(l.t.Context(), text("SELECT upto FROM pawl.shelf_at WHERE shelf = %d", h.Shelf)).Scan(&upto)
	if err != nil {
		l.t.Fatal(err)
	}
	visited = l.sent.During(l.s.pg.Texts.Schema, "event", func() { got = len(p.next(n, p.all()...)) },
		text("UPDATE pawl.hand_at SET turn = %d WHERE hand = %d", h.Number, h.ID),
		text("UPDATE pawl.shelf_at SET upto = %d WHERE shelf = %d", upto, h.Shelf))
	return got, visited
}

// onlyTurns reads nothing ahead, which would be counted with the turn that it is beside.
type onlyTurns struct{ feedtest.Grouping }

func (l *visitLab) join(t *testing.T, pattern string, mode stream.Mode) *player {
	return joinOn(t, feedtest.New(t, onlyTurns{l.s}), memberOf(pattern+mode.String(), pattern, "m", mode))
}

// A turn visits as many events at the end of a long log as at its beginning, and a group on a
// rare topic does not visit the others.
func TestE10_TurnsVisitWhatTheyGive(t *testing.T) {
	t.Parallel()
	turnsVisit(t, 100_000)
}

func turnsVisit(t *testing.T, events int) {
	t.Helper()
	const n = 64
	s, sent := openTraced(t)
	fillLog(t, s, events)
	l := &visitLab{t, s, sent}
	for _, pattern := range []string{">", "busy"} {
		for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
			p := l.join(t, pattern, mode)
			first, last := 0, 0
			for total, turns := 0, 0; ; turns++ {
				if measured := turns == 3 || total > events-40*n; !measured {
					got := len(p.next(1000, p.all()...))
					if total += got; got == 0 {
						break
					}
					continue
				}
				got, visited := l.turn(p, n)
				if total += got; got < n {
					break
				}
				if last = visited; first == 0 {
					first = visited
				}
			}
			t.Logf("%s, %s: %d events visited at the beginning, %d at the end", pattern, mode, first, last)
			if first == 0 || last > first || first > 4*n {
				t.Errorf("%s, %s: %d events visited for %d at the beginning, %d at the end", pattern, mode, first, n, last)
			}
		}
	}
	for _, pattern := range []string{">", "busy"} {
		match := memberOf("g", pattern, "m", stream.Competing).Match
		room := make([]*store.Given, n)
		for i := range room {
			room[i] = new(store.Given)
		}
		for _, place := range []int64{0, int64(events) - 2*n} {
			visited := l.sent.During(s.pg.Texts.Schema, "event", func() {
				if a, err := s.ReadAhead(t.Context(), &match, place, room); err != nil || len(a.Given) != n {
					t.Errorf("%s: %d are read ahead, %v", pattern, len(a.Given), err)
				}
			})
			if t.Logf("%s: %d events visited to read ahead behind %d", pattern, visited, place); visited == 0 || visited > 4*n {
				t.Errorf("%s: %d events visited to read %d ahead behind %d", pattern, visited, n, place)
			}
		}
	}
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		p := l.join(t, "rare", mode)
		p.next(1)
		got, visited := l.turn(p, n)
		if visited > 6*events/5000 || got == 0 {
			t.Errorf("rare, %s: %d events visited for %d", mode, visited, got)
		}
		t.Logf("rare, %s: %d events visited for %d", mode, visited, got)
	}
}

// Whoever publishes waits for nothing that members, or those who look after them, have locked.
func TestE10_APublisherWaitsForNoConsumer(t *testing.T) {
	t.Parallel()
	g := newGroupLab(t)
	g.publish("a", "1")
	m := g.join("g", "a", "m", stream.Competing)
	m.want("1")
	lock := g.begin()
	g.run(lock, "SELECT pg_advisory_xact_lock($1)", g.s.groups.LockKey(m.feed.Hand().Shelf))
	for _, table := range []string{"consumer_group", "shelf", "shelf_at", "hand", "hand_at", "retry", "stripe", "acked"} {
		g.run(lock, "SELECT FROM pawl."+table+" FOR UPDATE")
	}
	g.publish("a", "2")
	g.commit(lock)
	if got := m.drain(); fmt.Sprint(got) != "[2]" {
		t.Errorf("%v come, want 2", got)
	}
}
