package streamtest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pawlwork/pawl/stream"
)

func losses() []testCase {
	return []testCase{
		{"E14_ALostMembersEventsGoToOthers", lostGoToOthers},
		{"E14_WhatALostMemberSaysIsTooLate", tooLate},
		{"E14_ManyMembersComeAndGo", manyMembers},
		{"E14_ASilentMemberIsLost", silent},
		{"E11_ALossCountsOnlyWhenItWasAlone", lossAlone},
		{"E11_LostTwiceItComesAlone", lostTwice},
		{"E11_ASuspectIsWaitedFor", suspectWaits},
		{"E11_PoisonTakesNoInnocentsAlong", poison},
	}
}

func lostGoToOthers(l *lab) {
	l.publish(some("a", 5)...)
	m, other := l.join(membership("g", "a", named("m"))), l.join(membership("g", "a"))
	m.need(3)
	l.Kill(l, "g", "m")
	got := map[string][]int{}
	for _, d := range other.need(5) {
		got[d.Event.ID] = []int{d.Failures, d.Losses}
	}
	equal(l, "failures and losses", got, map[string][]int{"a-0": {0, 1}, "a-1": {0, 1}, "a-2": {0, 1}, "a-3": {0, 0}, "a-4": {0, 0}})
}

func tooLate(l *lab) {
	l.publish(some("a", 2)...)
	m := l.join(membership("g", "a", named("m"), lettersTo("dead")))
	m.need(2)
	l.Kill(l, "g", "m")
	ack, dead := m.say("a-0", stream.Acked), m.say("a-1", stream.Dead)
	if _, err := m.try(stream.Want{N: 5}, ack, dead); !errors.Is(err, stream.ErrFeedLost) {
		l.Errorf("next: %v", err)
	}
	if err := m.feed.Wait(l.ctx); !errors.Is(err, stream.ErrFeedLost) {
		l.Errorf("wait: %v", err)
	}
	if err := m.feed.Leave(l.ctx, []stream.Settlement{ack}); !errors.Is(err, stream.ErrFeedLost) {
		l.Errorf("leave: %v", err)
	}
	again := l.join(membership("g", "a", named("m"), lettersTo("dead")))
	equal(l, "both come again", len(again.need(2)), 2)
	equal(l, "a letter of one that was lost", l.join(membership("letters", "dead")).drain(5), []string(nil))
	if _, err := m.try(stream.Want{N: 5}, ack); !errors.Is(err, stream.ErrFeedLost) {
		l.Errorf("next, when another of its name is there: %v", err)
	}
	equal(l, "still open", len(again.open), 2)
}

// Two hundred members join, take, leave or die, in groups of each mode that shares: every event
// is done once, none is given to two who live, and none is forgotten.
func manyMembers(l *lab) { l.comeAndGo(200) }

func (l *lab) comeAndGo(made int) {
	modes := []stream.Mode{stream.Competing}
	if l.features.Ordered {
		modes = append(modes, stream.Ordered)
	}
	for _, mode := range modes {
		l.comeAndGoIn(mode, made)
	}
}

func (l *lab) comeAndGoIn(mode stream.Mode, atLeast int) {
	const most = 12
	total := 2 * atLeast
	dice := l.dice()
	topic, group := "many."+mode.String(), "many-"+mode.String()
	for i := range total {
		l.publish(event(topic, fmt.Sprint(i), withKey(fmt.Sprint("k", i%100))))
	}
	done, members, made := map[string]bool{}, map[string]*player{}, 0
	for len(done) < total {
		if made < atLeast && len(members) < most || len(members) == 0 {
			name := fmt.Sprint("m", made)
			made++
			members[name] = l.join(membership(group, topic, inMode(mode), named(name)))
		}
		name := sorted(members)[dice.IntN(len(members))]
		m := members[name]
		var settled []stream.Settlement
		var acked []string
		for _, id := range sorted(m.open) {
			if dice.IntN(2) == 0 {
				settled, acked = append(settled, m.say(id, stream.Acked)), append(acked, id)
			}
		}
		var got []stream.Delivery
		switch dice.IntN(6) {
		case 0:
			l.Kill(l, group, name)
			delete(members, name)
			acked = nil
		case 1:
			if err := m.feed.Leave(l.ctx, settled); err != nil {
				l.Fatal(err)
			}
			delete(members, name)
		default:
			got = m.next(1+dice.IntN(5), settled...)
		}
		for _, id := range acked {
			if done[id] {
				l.Fatalf("%s is done twice", id)
			}
			done[id] = true
		}
		for _, d := range got {
			for other, o := range members {
				if _, open := o.open[d.Event.ID]; open && o != m || done[d.Event.ID] {
					l.Fatalf("%s is given to %s; it is done: %v, %s has it open: %v", d.Event.ID, name, done[d.Event.ID], other, open)
				}
			}
		}
	}
	for _, name := range sorted(members) {
		members[name].quiet("all are done")
	}
}

func silent(l *lab) {
	if l.features.Extend == 0 {
		return // something else keeps the lease
	}
	l.publish(event("a", "1"))
	m := l.join(membership("g", "a"))
	m.need(1)
	for range 6 {
		l.Pass(l.features.Extend)
		m.next(0)
	}
	l.Pass(4 * l.features.Extend)
	if _, err := m.try(stream.Want{}); !errors.Is(err, stream.ErrFeedLost) {
		l.Errorf("after a long silence: %v", err)
	}
	equal(l, "losses", l.join(membership("g", "a")).need(1)[0].Losses, 1)
}

func lossAlone(l *lab) {
	l.publish(some("a", 2)...)
	for i := range 2 {
		m := l.join(membership("g", "a", named("m")))
		for _, d := range m.need(2) {
			equal(l, d.Event.ID, []int{d.Failures, d.Losses}, []int{0, i})
		}
		if i == 0 {
			l.Kill(l, "g", "m")
			continue
		}
		// One turn gives one back, and what is left is alone.
		m.next(0, m.say("a-1", stream.Acked))
		l.Kill(l, "g", "m")
	}
	d := l.join(membership("g", "a")).need(1)[0]
	equal(l, "a-0", []any{d.Event.ID, d.Failures, d.Losses, d.Alone}, []any{"a-0", 1, 2, true})
}

func lostTwice(l *lab) {
	l.publish(some("a", 3)...)
	for range 2 {
		m := l.join(membership("g", "a", named("m")))
		m.need(3)
		l.Kill(l, "g", "m")
	}
	m := l.join(membership("g", "a", named("m")))
	for i := range 3 {
		got := m.next(10, m.ackAll()...)
		if len(got) != 1 || !got[0].Alone || got[0].Failures != 0 || got[0].Losses != 2 {
			l.Fatalf("%d: %+v", i, got)
		}
		equal(l, "beside it", len(m.next(10)), 0)
	}
	equal(l, "at the end", m.drain(5), []string(nil))
}

// A busy member gets nothing new until it is idle, and then the suspect: else it might never
// be. An idle one gets it at once, and the busy one goes on.
func suspectWaits(l *lab) {
	suspect := func(id string) {
		l.publish(event("x", id))
		for range 2 {
			m := l.join(membership("g", "x", named("m")))
			equal(l, "given", m.need(1)[0].Event.ID, id)
			l.Kill(l, "g", "m")
		}
	}
	busy := l.join(membership("g", "x"))
	l.publish(event("x", "1"))
	busy.need(1)
	suspect("s")
	l.publish(event("x", "2"), event("x", "3"))
	busy.quiet("a suspect waits")
	got := busy.next(9, busy.say("1", stream.Acked))
	if len(got) != 1 || got[0].Event.ID != "s" || !got[0].Alone {
		l.Fatalf("an idle member gets %+v", got)
	}
	busy.quiet("it has a suspect")
	equal(l, "afterwards", len(busy.next(9, busy.ackAll()...)), 2)

	suspect("t")
	l.publish(event("x", "4"))
	busy.quiet("a suspect waits")
	idle := l.join(membership("g", "x"))
	got = idle.next(9)
	if len(got) != 1 || got[0].Event.ID != "t" {
		l.Fatalf("an idle member gets %+v", got)
	}
	equal(l, "the busy one goes on", busy.need(1)[0].Event.ID, "4")
}

// Handlers of five events end their process, with whatever else it had. Members die as often
// as it takes; those five are given up, each after its deliveries, and nobody else.
func poison(l *lab) {
	const total, deliveries = 2000, 2
	bad := map[string]bool{}
	dice := l.dice()
	list := some("a", total)
	for len(bad) < 5 {
		bad[list[dice.IntN(total)].ID] = true
	}
	for len(list) > 0 {
		n := min(250, len(list))
		l.publish(list[:n]...)
		list = list[n:]
	}
	acked, dead, ran, kills := map[string]int{}, map[string]int{}, map[string]int{}, 0
	join := func(i int) *player { return l.join(membership("g", "a", named(fmt.Sprint("m", i)), lettersTo("dead"))) }
	members := []*player{join(0), join(1), join(2)}
	for len(acked)+len(dead) < total {
		i := dice.IntN(3)
		m := members[i]
		var settled []stream.Settlement
		dies := false
		for _, id := range sorted(m.open) {
			d := m.last[id]
			switch s := m.say(id, stream.Acked); {
			case d.Failures >= deliveries:
				s.Verdict, s.Failures, s.Reason = stream.Dead, d.Failures, "lost too often"
				settled = append(settled, s)
			case bad[id]:
				ran[id]++
				dies = true
			case dice.IntN(3) > 0:
				settled = append(settled, s)
			}
		}
		if dies {
			kills++
			l.Kill(l, "g", fmt.Sprint("m", i))
			members[i] = join(i)
			continue
		}
		if _, err := m.try(stream.Want{N: 1 + dice.IntN(16)}, settled...); err != nil {
			l.Fatal(err)
		}
		for _, s := range settled {
			for id, d := range m.last {
				if d.Ref == s.Ref {
					if s.Verdict == stream.Dead {
						dead[id]++
					} else {
						acked[id]++
					}
				}
			}
		}
		for id := range m.last {
			if _, open := m.open[id]; !open {
				delete(m.last, id)
			}
		}
		if kills > 200 {
			l.Fatalf("%d members died, and %d are done", kills, len(acked)+len(dead))
		}
	}
	for id, n := range dead {
		if !bad[id] || n != 1 {
			l.Errorf("%s is dead %d times, and poison: %v", id, n, bad[id])
		}
	}
	for id := range bad {
		if dead[id] != 1 || ran[id] < deliveries || ran[id] > deliveries+2 {
			l.Errorf("%s is dead %d times after %d runs", id, dead[id], ran[id])
		}
	}
	for id, n := range acked {
		equal(l, id, n, 1)
	}
	letters := l.join(membership("letters", "dead")).drain(9)
	equal(l, "letters", len(letters), 5)
	for _, id := range letters {
		if !strings.HasPrefix(id, "dead-") {
			l.Errorf("a letter is called %s", id)
		}
	}
}
