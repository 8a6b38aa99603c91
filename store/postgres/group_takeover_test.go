package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlwork/pawl/stream"
)

// holdTakeover begins to take a member for dead, and holds that before its commit: the version
// of the group is raised last, and somebody has locked it.
func (g *groupLab) holdTakeover(p *player) (finish func()) {
	g.t.Helper()
	lock := g.begin()
	g.run(lock, "SELECT FROM pawl.consumer_group FOR UPDATE")
	lost := later(func() (int, error) { return g.lose(p) })
	g.waiting(1)
	return func() {
		g.t.Helper()
		if err := lock.Rollback(context.Background()); err != nil {
			g.t.Fatal(err)
		}
		if n, err := lost(); n != 1 || err != nil {
			g.t.Errorf("%d members are lost, %v", n, err)
		}
	}
}

// What a member says while it is taken for dead is too late, as is what it says afterwards: its
// turn waits for the takeover, and finds its hand gone.
func TestE14_AZombiesTurnDuringATakeover(t *testing.T) {
	t.Parallel()
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered, stream.FanOut} {
		for _, verdict := range []stream.Verdict{stream.Acked, stream.Kept, stream.Released, stream.Dead} {
			t.Run(fmt.Sprint(mode, " ", verdict), func(t *testing.T) {
				t.Parallel()
				g := newGroupLab(t)
				g.publish("a", "1", "2", "3")
				zombie := g.join("g", "a", "m", mode)
				zombie.want("1", "2", "3")
				finish := g.holdTakeover(zombie)
				turn := later(func() ([]string, error) { return zombie.try(5, zombie.say("1", verdict)) })
				g.waiting(2)
				finish()
				_, err := turn()
				zombie.lost("a turn during its takeover", err)
				_, err = zombie.try(5, zombie.say("2", verdict))
				zombie.lost("a turn after its takeover", err)

				heir := g.join("g", "a", "m", mode)
				heir.want("1", "2", "3")
				for id, d := range heir.open {
					if d.Losses != 1 || d.Failures != 0 {
						t.Errorf("%s has %d losses and %d failures, want one and none", id, d.Losses, d.Failures)
					}
				}
				if info, err := g.s.GroupNamed(t.Context(), "g"); err != nil || info.Parked != 0 {
					t.Errorf("%d are parked, %v", info.Parked, err)
				}
				if more := heir.next(5, heir.all()...); len(more) > 0 {
					t.Errorf("%v come after all were done", more)
				}
			})
		}
	}
}

// A busy member that dies just when it begins to wait for a suspect does not keep others from
// waiting for it: else a group that is never idle would never run it.
func TestE11_ADeadMemberWaitsForNoSuspect(t *testing.T) {
	t.Parallel()
	g := newGroupLab(t)
	zombie := g.join("g", "a", "zombie", stream.Competing)
	busy := g.join("g", "a", "busy", stream.Competing)
	g.publish("a", "1")
	zombie.want("1")
	g.publish("a", "2")
	busy.want("2")
	g.suspect("g", "a", "s")
	finish := g.holdTakeover(zombie)
	turn := later(func() ([]string, error) { return zombie.try(5) })
	if _, err := turn(); err != nil {
		t.Logf("the zombie: %v", err)
	}
	finish()
	g.publish("a", "3")
	if got := busy.next(5); len(got) > 0 {
		t.Errorf("%v comes while a suspect waits", got)
	}
	got := busy.next(5, busy.all()...)
	if len(got) != 1 || got[0] != "s" || !busy.open["s"].Alone {
		t.Errorf("an idle member gets %v, want the suspect alone", got)
	}
	if rest := busy.drain(); fmt.Sprint(rest) != "[1 3]" {
		t.Errorf("%v come after the suspect", rest)
	}
}

// A topic that is new to the process makes its turn look once more. That does not bring
// anything beside a suspect.
func TestE11_NothingComesBesideASuspectWhenTopicsAreNew(t *testing.T) {
	t.Parallel()
	g := newGroupLab(t)
	g.suspect("g", "a", "s")
	m := g.join("g", "a", "m", stream.Competing)
	g.publish("a", "1", "2")
	g.publish("b", "another topic")
	got := m.next(5)
	if len(got) != 1 || got[0] != "s" || !m.open["s"].Alone {
		t.Errorf("an idle member gets %v, want the suspect alone", got)
	}
	if got := m.drain(); fmt.Sprint(got) != "[1 2]" {
		t.Errorf("%v come after the suspect", got)
	}
}

// A server that crashed has taken back what was not on the disk: the member, whose turn is not
// the next one any more, joins again, and gets what its group has not done.
func TestE14_ACrashTakesATurnBack(t *testing.T) {
	t.Parallel()
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered, stream.FanOut} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			g := newGroupLab(t)
			g.publish("a", "1", "2", "3", "4")
			m := g.join("g", "a", "m", mode)
			if got := m.next(2); len(got) != 2 {
				t.Fatalf("%v come", got)
			}
			tables := []string{"hand_at", "shelf_at", "retry", "stripe"}
			keep := g.begin()
			for _, table := range tables {
				g.run(keep, "CREATE TABLE kept_"+table+" AS SELECT * FROM pawl."+table)
			}
			g.commit(keep)
			acked := m.all()
			before := m.open
			if got := m.next(2, acked...); len(got) != 2 {
				t.Fatalf("%v come", got)
			}
			crash := g.begin()
			for _, table := range tables {
				g.run(crash, "DELETE FROM pawl."+table)
				g.run(crash, "INSERT INTO pawl."+table+" SELECT * FROM kept_"+table)
				g.run(crash, "DROP TABLE kept_"+table)
			}
			g.run(crash, "DELETE FROM pawl.log_life")
			g.commit(crash)
			_, err := m.try(2, m.all()...)
			m.lost("a turn that the crash took back", err)
			again := g.join("g", "a", "m", mode)
			got := map[string]bool{}
			for _, id := range again.drain() {
				if got[id] {
					t.Errorf("%s came twice", id)
				}
				got[id] = true
			}
			if len(got) != 4 {
				t.Errorf("%v come after the crash, want all four: two were open, %v", got, before)
			}
		})
	}
}

// A log that goes on in another epoch keeps its groups: nothing of them is lost, and what they
// get has the positions of the new one.
func TestE14_AnotherEpoch(t *testing.T) {
	t.Parallel()
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered, stream.FanOut} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			g := newGroupLab(t)
			g.publish("a", "1", "2", "3")
			m := g.join("g", "a", "m", mode)
			if got := m.next(1); len(got) != 1 {
				t.Fatalf("%v come", got)
			}
			change := g.begin()
			g.run(change, "UPDATE pawl.epoch SET timeline = timeline + 1")
			g.run(change, "DELETE FROM pawl.log_life")
			g.commit(change)
			g.publish("a", "4")
			got := m.drain()
			if fmt.Sprint(got) != "[2 3 4]" {
				t.Errorf("%v come, want 2 to 4", got)
			}
			if info, err := g.s.GroupNamed(t.Context(), "g"); err != nil || info.At.Epoch() < 2 || info.Open != 0 {
				t.Errorf("the group is at %s with %d open, %v", info.At.Debug(), info.Open, err)
			}
		})
	}
}

// What waits and is gone from the log goes, too, and keeps nobody waiting.
func TestE11_WhatIsGoneFromTheLogIsNotWaitedFor(t *testing.T) {
	eachMode(t, func(t *testing.T, g *groupLab, mode stream.Mode) {
		g.publish("a", "1", "2", "3")
		for range 2 {
			m := g.join("g", "a", "m", mode)
			m.want("1", "2", "3")
			g.kill(m)
		}
		cut := g.begin()
		g.run(cut, "DELETE FROM pawl.event WHERE id IN ('1', '3')")
		g.commit(cut)
		m := g.join("g", "a", "m", mode)
		var got []string
		for range 5 {
			got = append(got, m.drain()...)
		}
		if fmt.Sprint(got) != "[2]" {
			t.Errorf("%v come, want 2", got)
		}
		if info, err := g.s.GroupNamed(t.Context(), "g"); err != nil || info.Open != 0 || info.Waiting != 0 {
			t.Errorf("%d are open and %d wait, %v", info.Open, info.Waiting, err)
		}
	})
}
