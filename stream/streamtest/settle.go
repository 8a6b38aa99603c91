package streamtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/stream"
)

func settling() []testCase {
	return []testCase{
		{"E10_AFetchIsExact", exactFetch},
		{"E11_AFailureIsCountedAndItsDelayKept", failureCounted},
		{"E11_WhatIsKeptStaysOpen", keptStaysOpen},
		{"E9_ReleasedIsNotCounted", releasedNotCounted},
		{"E9_WhatIsNotOpenIsPassedOver", notOpen},
		{"E15_LeaveGivesBackWithoutCounting", leaveGivesBack},
		{"E8_EachOnceInAnyOrder", eachOnce},
	}
}

func exactFetch(l *lab) {
	l.publish(some("a", 10)...)
	m := l.join(membership("g", "a"))
	m.next(0)
	equal(l, "fetched", len(m.need(3)), 3)
	all := m.ackAll()
	for i := range all {
		all[i].Verdict = stream.Retried
	}
	equal(l, "none", len(m.next(0, all...)), 0)
	equal(l, "redeliveries, and new ones", len(m.need(5)), 5)
	equal(l, "the rest", len(m.need(5)), 5)
	m.quiet("all are open")
}

func failureCounted(l *lab) {
	l.publish(event("a", "1"))
	m, other := l.join(membership("g", "a")), l.join(membership("other", "a"))
	since := watch()
	for i := range 4 {
		d := m.need(1)[0]
		equal(l, "failures", []int{d.Failures, d.Losses}, []int{i, 0})
		if took := since(); took < time.Duration(i)*90*time.Millisecond {
			l.Errorf("after %d delays of 100 ms only %v are over", i, took)
		}
		s := m.say("1", stream.Retried)
		s.Delay = 100 * time.Millisecond
		m.quiet("it is open")
		m.next(0, s)
	}
	equal(l, "of another group", other.drain(9), []string{"1"})
	m.need(1)
	equal(l, "acked", m.drain(1), []string(nil))
}

func keptStaysOpen(l *lab) {
	l.publish(event("a", "1"), event("a", "2"))
	m := l.join(membership("g", "a", named("m")))
	m.need(2)
	m.next(0, m.say("1", stream.Kept))
	m.next(0, m.say("1", stream.Kept))
	m.quiet("it stays open")
	l.Kill(l, "g", "m")
	after := l.join(membership("g", "a"))
	for _, d := range after.need(2) {
		want := map[string][]int{"1": {2, 1}, "2": {0, 1}}[d.Event.ID]
		equal(l, "failures and losses of "+d.Event.ID, []int{d.Failures, d.Losses}, want)
	}
}

func releasedNotCounted(l *lab) {
	l.publish(event("a", "1"))
	m := l.join(membership("g", "a"))
	for range 5 {
		d := m.need(1)[0]
		equal(l, "counts", []int{d.Failures, d.Losses}, []int{0, 0})
		m.next(0, m.say("1", stream.Released))
	}
}

func notOpen(l *lab) {
	l.publish(some("a", 2)...)
	m := l.join(membership("g", "a"))
	m.need(2)
	done := m.say("a-0", stream.Acked)
	m.next(0, done)
	m.next(0, done) // said twice
	m.next(0, stream.Settlement{Ref: 1 << 60, Verdict: stream.Retried})
	equal(l, "the other", m.drain(5), []string(nil))
	l.join(membership("g", "a")).quiet("both are done")
}

func leaveGivesBack(l *lab) {
	l.publish(some("a", 6)...)
	m, rest := l.join(membership("g", "a")), l.join(membership("g", "a"))
	m.need(6)
	retry := m.say("a-1", stream.Retried)
	if err := m.feed.Leave(l.ctx, []stream.Settlement{m.say("a-0", stream.Acked), retry}); err != nil {
		l.Fatal(err)
	}
	var got []string
	for _, d := range rest.need(5) {
		got = append(got, fmt.Sprintf("%s %d%d", d.Event.ID, d.Failures, d.Losses))
	}
	slices.Sort(got)
	equal(l, "given back", got, []string{"a-1 10", "a-2 00", "a-3 00", "a-4 00", "a-5 00"})
	if _, err := m.try(stream.Want{N: 1}); err == nil {
		l.Error("a member that has left is fed")
	}
}

// Three members do anything, and each event ends once, with the failures that were counted.
func eachOnce(l *lab) {
	const total = 300
	dice := l.dice()
	l.publish(some("a", total)...)
	failures, ended := map[string]int{}, map[string]int{}
	members := make([]*player, 3)
	for i := range members {
		members[i] = l.join(membership("g", "a"))
	}
	for len(ended) < total {
		i := dice.IntN(3)
		m := members[i]
		var settled []stream.Settlement
		for _, id := range sorted(m.open) {
			switch dice.IntN(6) {
			case 0, 1:
				settled = append(settled, m.say(id, stream.Acked))
				ended[id]++
			case 2:
				settled = append(settled, m.say(id, stream.Retried))
				failures[id]++
			case 3:
				settled = append(settled, m.say(id, stream.Released))
			}
		}
		if dice.IntN(12) == 0 {
			if err := m.feed.Leave(l.ctx, settled); err != nil {
				l.Fatal(err)
			}
			members[i] = l.join(membership("g", "a"))
			continue
		}
		for _, d := range m.next(dice.IntN(9), settled...) {
			if d.Failures != failures[d.Event.ID] || d.Losses != 0 {
				l.Fatalf("%s: %d failures and %d losses, want %d and 0", d.Event.ID, d.Failures, d.Losses, failures[d.Event.ID])
			}
		}
	}
	for id, n := range ended {
		equal(l, id, n, 1)
	}
	for _, m := range members {
		m.quiet("all are done")
	}
}
