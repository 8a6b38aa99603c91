package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// ack acknowledges in a user's transaction.
func (p *player) ack(s *Store, tx pgx.Tx, id string) error {
	return p.feed.Ack(p.t.Context(), s.Within(tx).(store.TxGroups), p.open[id].Ref)
}

func (g *groupLab) mustAck(p *player, tx pgx.Tx, id string) {
	g.t.Helper()
	if err := p.ack(g.s, tx, id); err != nil {
		g.t.Fatal(err)
	}
}

// eachMode runs a test in every mode.
func eachMode(t *testing.T, test func(t *testing.T, g *groupLab, mode stream.Mode)) {
	t.Parallel()
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered, stream.FanOut} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			test(t, newGroupLab(t), mode)
		})
	}
}

// What a transaction acknowledges is done when it commits, whatever the handler says: with its
// next turn, when the member leaves, and when it dies.
func TestE28_AnAckCommitsWithTheTransaction(t *testing.T) {
	eachMode(t, func(t *testing.T, g *groupLab, mode stream.Mode) {
		for _, end := range []string{"turn", "leave", "death"} {
			g.publish(end, "1", "2")
			m := g.join(end, end, "m", mode)
			m.want("1", "2")
			tx := g.begin()
			g.mustAck(m, tx, "1")
			if err := m.ack(g.s, tx, "1"); !errors.Is(err, stream.ErrSettled) {
				t.Errorf("acknowledged twice: %v", err)
			}
			g.commit(tx)
			failed := m.say("1", stream.Released) // its handler gave up after the commit
			switch end {
			case "turn":
				if got := m.next(5, failed); len(got) > 0 {
					t.Errorf("%v come", got)
				}
				g.kill(m)
			case "leave":
				if err := m.feed.Leave(t.Context(), []stream.Settlement{failed}); err != nil {
					t.Fatal(err)
				}
				if mode == stream.FanOut {
					continue // its place is forgotten with it
				}
			case "death":
				g.kill(m)
			}
			if got := g.join(end, end, "m", mode).drain(); fmt.Sprint(got) != "[2]" {
				t.Errorf("%s: %v come again, want 2", end, got)
			}
		}
	})
}

// One that is rolled back, in whole or to a savepoint, has acknowledged nothing: the handler's
// own word counts.
func TestE28_ARolledBackAckIsNone(t *testing.T) {
	eachMode(t, func(t *testing.T, g *groupLab, mode stream.Mode) {
		g.publish("a", "1", "2", "3", "4")
		m := g.join("g", "a", "m", mode)
		m.want("1", "2", "3", "4")
		tx := g.begin()
		g.mustAck(m, tx, "1")
		g.mustAck(m, tx, "2")
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		tx = g.begin()
		g.run(tx, "SAVEPOINT a")
		g.mustAck(m, tx, "3")
		g.run(tx, "ROLLBACK TO SAVEPOINT a")
		g.mustAck(m, tx, "4")
		g.commit(tx)
		// 1 is released by its handler, 2 acked after all, 3 released, 4 is done whatever it says.
		got := m.next(5, m.say("1", stream.Released), m.say("2", stream.Acked), m.say("3", stream.Released), m.say("4", stream.Released))
		if got = append(got, m.drain()...); fmt.Sprint(got) != "[1 3]" {
			t.Errorf("%v come again, want 1 and 3", got)
		}
	})
}

// A member whose user's transaction is about to acknowledge is not taken over before that has
// ended: what it commits is not delivered again.
func TestE28_ATakeoverWaitsForTheTransaction(t *testing.T) {
	eachMode(t, func(t *testing.T, g *groupLab, mode stream.Mode) {
		g.publish("a", "1", "2")
		m := g.join("g", "a", "m", mode)
		m.want("1", "2")
		tx := g.begin()
		g.mustAck(m, tx, "1")
		if n, err := g.lose(m); n != 0 || err != nil {
			t.Errorf("%d members are lost while a transaction acknowledges, %v", n, err)
		}
		if mode != stream.FanOut {
			if got := g.join("g", "a", "other", mode).next(5); len(got) > 0 {
				t.Errorf("%v come while a transaction acknowledges", got)
			}
		}
		g.commit(tx)
		g.kill(m)
		if got := g.join("g", "a", "m", mode).drain(); mode != stream.Ordered && fmt.Sprint(got) != "[2]" {
			t.Errorf("%v come again, want 2", got)
		}
		late := g.begin()
		if err := m.ack(g.s, late, "2"); !errors.Is(err, stream.ErrFeedLost) {
			t.Errorf("a lost member acknowledges: %v", err)
		}
	})
}

// The answer of the commit is lost: what was acknowledged is done where that has happened, and
// comes again where it has not.
func TestE28_LostAnswers_Commit(t *testing.T) {
	t.Parallel()
	for _, happens := range []bool{true, false} {
		t.Run(fmt.Sprint(happens), func(t *testing.T) {
			l := newLossy(t)
			b := feedtest.New(t, l.s)
			if _, err := l.s.Append(t.Context(), []stream.Publication{eventOf("1", "", "a"), eventOf("2", "", "a")}); err != nil {
				t.Fatal(err)
			}
			m := joinOn(t, b, memberOf("g", "a", "m", stream.Competing))
			m.want("1", "2")
			tx, err := l.s.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := m.feed.Ack(t.Context(), tx.(store.TxGroups), m.open["1"].Ref); err != nil {
				t.Fatal(err)
			}
			fate := pgproxy.Cut // the commit gets through, its answer does not
			if !happens {
				fate = pgproxy.Drop
			}
			lost := l.lose(1, fate)
			err = tx.Commit(context.Background())
			l.proxy.Judge(nil)
			if *lost == nil {
				t.Fatal("nothing was lost")
			}
			t.Logf("commit: %v", err)
			got := m.next(5, m.say("1", stream.Released))
			if happens != (len(got) == 0) {
				t.Errorf("%v come again, and the commit has happened: %v", got, happens)
			}
			if rest := m.drain(); len(rest) > 0 {
				t.Errorf("%v come after all", rest)
			}
		})
	}
}
