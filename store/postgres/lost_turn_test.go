package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/stream"
)

// turnCase settles what a member has, one with each verdict, and takes more, or leaves.
func turnCase(name string, mode stream.Mode, leave bool, verdicts ...stream.Verdict) lostCase {
	return lostCase{name: name, play: func(l *lossy) (func(context.Context) error, func(error)) {
		topic, ids := l.queue, []string{}
		var list []stream.Publication
		for i := range len(verdicts) + 3 {
			ids = append(ids, fmt.Sprint(i))
			list = append(list, eventOf(ids[i], "", topic))
		}
		if _, err := l.direct.Append(l.t.Context(), list); err != nil {
			l.t.Fatal(err)
		}
		if _, err := l.s.Head(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
		if _, err := l.hasty.Head(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
		b := feedtest.New(l.t, l.s)
		want := memberOf(topic, topic, "m", mode)
		want.DeadLetter = topic + "-dead"
		m := joinOn(l.t, b, want)
		m.next(1 + len(verdicts))
		var settled []stream.Settlement
		var acked, dead []string
		for i, v := range verdicts {
			settled = append(settled, m.say(ids[i], v))
			switch v {
			case stream.Acked:
				acked = append(acked, ids[i])
			case stream.Dead:
				dead = append(dead, ids[i])
			}
		}
		call := func(ctx context.Context) error {
			if leave {
				return m.feed.Leave(ctx, settled)
			}
			_, err := m.try(2, settled...)
			return err
		}
		return call, func(err error) {
			if err != nil && !errors.Is(err, stream.ErrFeedLost) {
				l.t.Logf("the turn: %v", err)
			}
			var came []string
			if !leave && err == nil {
				for id := range m.open {
					came = append(came, id)
				}
			}
			if got, lost := m.try(5, m.all()...); !leave && err == nil && lost == nil {
				came = append(came, got...)
				came = append(came, m.drain()...)
			} else {
				again := joinOn(l.t, b, want)
				came = append(came, again.drain()...)
			}
			for _, id := range ids {
				n := 0
				for _, c := range came {
					if c == id {
						n++
					}
				}
				switch over := slices.Contains(acked, id) || slices.Contains(dead, id); {
				case over && err == nil && n > 0:
					l.t.Errorf("%s comes again though its turn was answered: %v", id, came)
				case !over && n == 0 && !(leave && mode == stream.FanOut):
					l.t.Errorf("%s is lost: %v", id, came)
				case n > 2:
					l.t.Errorf("%s comes %d times: %v", id, n, came)
				}
			}
			letters := joinOn(l.t, b, memberOf(topic+"-letters", topic+"-dead", "m", stream.Competing)).drain()
			if len(letters) > len(dead) || err == nil && len(letters) != len(dead) {
				l.t.Errorf("there are %d dead letters, want %d", len(letters), len(dead))
			}
		}
	}}
}

// A turn whose answer was lost has happened once, or not at all: what it acknowledged is done
// when it was answered, what it took is the member's or comes again, and nothing is lost.
func TestE14_LostAnswers_Turn(t *testing.T) {
	loseEach(t,
		turnCase("competing", stream.Competing, false, stream.Acked, stream.Retried, stream.Kept),
		turnCase("competing, with a letter", stream.Competing, false, stream.Acked, stream.Dead),
		turnCase("fan-out", stream.FanOut, false, stream.Acked, stream.Released),
		turnCase("ordered", stream.Ordered, false, stream.Acked, stream.Kept),
		turnCase("ordered, with a letter", stream.Ordered, false, stream.Acked, stream.Dead),
		turnCase("leave", stream.Competing, true, stream.Acked, stream.Retried, stream.Dead),
		turnCase("leave in order", stream.Ordered, true, stream.Acked, stream.Released),
	)
}

// A takeover whose answer was lost counts one loss.
func TestE14_LostAnswers_Takeover(t *testing.T) {
	loseEach(t, lostCase{name: "lose", play: func(l *lossy) (func(context.Context) error, func(error)) {
		b := feedtest.New(l.t, l.s)
		if _, err := l.s.Append(l.t.Context(), []stream.Publication{eventOf("1", "", l.queue), eventOf("2", "", l.queue)}); err != nil {
			l.t.Fatal(err)
		}
		m := joinOn(l.t, b, memberOf(l.queue, l.queue, "m", stream.Competing))
		m.want("1", "2")
		g := &groupLab{t: l.t, s: l.s}
		call := func(context.Context) error {
			_, err := g.lose(m)
			return err
		}
		return call, func(err error) {
			l.surely(err)
			heir := joinOn(l.t, b, memberOf(l.queue, l.queue, "heir", stream.Competing))
			heir.want("1", "2")
			for id, d := range heir.open {
				if d.Losses != 1 {
					l.t.Errorf("%s has %d losses, want one", id, d.Losses)
				}
			}
		}
	}})
}
