package postgres

import (
	"fmt"
	"testing"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/stream"
)

// A server that crashed may give numbers out again that nobody has stored. What a process knew
// of the head is then too far, and it does not read up to it.
func TestE14_AHeadOfBeforeACrashIsForgotten(t *testing.T) {
	eachMode(t, func(t *testing.T, g *groupLab, mode stream.Mode) {
		g.publish("a", "1", "2")
		m := g.join("g", "a", "m", mode)
		if got := m.drain(); fmt.Sprint(got) != "[1 2]" {
			t.Fatalf("%v come", got)
		}
		burn := g.begin()
		g.run(burn, "SELECT nextval('pawl.event_seq') FROM generate_series(1, 50)")
		g.commit(burn)
		if _, err := g.s.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
		crash := g.begin()
		g.run(crash, "DELETE FROM pawl.log_life")
		g.run(crash, "SELECT setval('pawl.event_seq', (SELECT max(seq) FROM pawl.event))")
		g.commit(crash)
		other := feedtest.New(t, g.open())
		var got []string
		for _, id := range []string{"3", "4", "5"} {
			if _, err := other.Publish(t.Context(), []stream.Publication{eventOf(id, "", "a")}); err != nil {
				t.Fatal(err)
			}
			got = append(got, m.next(5, m.all()...)...)
		}
		if _, err := g.s.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got = append(got, m.drain()...); fmt.Sprint(got) != "[3 4 5]" {
			t.Errorf("%v come after the crash, want 3 to 5", got)
		}
		g.publish("a", "6")
		if got := m.drain(); fmt.Sprint(got) != "[6]" {
			t.Errorf("%v come, want 6", got)
		}
	})
}

// The first event of a topic that the process has not heard of is not passed over, when it lies
// before one of a topic that it knows.
func TestE8_ANewTopicIsNotSkipped(t *testing.T) {
	eachMode(t, func(t *testing.T, g *groupLab, mode stream.Mode) {
		g.publish("a.x", "1")
		m := g.join("g", "a.*", "m", mode)
		if got := m.drain(); fmt.Sprint(got) != "[1]" {
			t.Fatalf("%v come", got)
		}
		other := feedtest.New(t, g.open())
		_, err := other.Publish(t.Context(), []stream.Publication{eventOf("2", "", "a.new"), eventOf("3", "", "a.x")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.s.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := m.drain(); fmt.Sprint(got) != "[2 3]" {
			t.Errorf("%v come, want 2 and 3", got)
		}
	})
}
