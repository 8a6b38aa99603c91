package streamtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/pawlwork/pawl/stream"
)

func ordered() []testCase {
	return []testCase{
		{"E8_OrderedByKeyOverMembers", orderedByKey},
		{"E8_StripesThatAreNotWanted", notWanted},
		{"E11_ASuspectKeepsItsPlace", suspectKeepsPlace},
		{"E16_ARetryWouldBreakTheOrder", retryRefused},
	}
}

// dice are random, and a failure prints their seed.
func (l *lab) dice() *rand.Rand {
	seed := rand.Uint64()
	l.Cleanup(func() {
		if l.Failed() {
			l.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Members come, go, die and fail. An event is given only when those before it of its key are
// done, or open at the same member; each is done once.
func orderedByKey(l *lab) {
	if !l.features.Ordered {
		return // E16_WhatCannotBeHadIsRefusedByName
	}
	const keys, each = 12, 25
	dice := l.dice()
	number := map[string][2]int{} // key and number of an event
	for i := range each {
		var list []stream.Publication
		for k := range keys {
			id := fmt.Sprintf("%d-%d", k, i)
			number[id] = [2]int{k, i}
			list = append(list, event("t", id, withKey(fmt.Sprint("key-", k))))
		}
		l.publish(list...)
	}
	join := func(i int) *player {
		return l.join(membership("g", "t", inMode(stream.Ordered), named(fmt.Sprint("m", i))))
	}
	members := []*player{join(0), join(1), join(2), join(3)}
	done, failures := map[string]bool{}, map[string]int{}
	given := func(m *player, d stream.Delivery) {
		k, i := number[d.Event.ID][0], number[d.Event.ID][1]
		if done[d.Event.ID] {
			l.Fatalf("%s is given after it was done", d.Event.ID)
		}
		if d.Failures < failures[d.Event.ID] {
			l.Fatalf("%s has %d failures, and %d were counted", d.Event.ID, d.Failures, failures[d.Event.ID])
		}
		for before := range i {
			id := fmt.Sprintf("%d-%d", k, before)
			if _, here := m.open[id]; !here && !done[id] {
				l.Fatalf("%s is given before %s is done", d.Event.ID, id)
			}
		}
		for _, other := range members {
			for id := range other.open {
				if other != m && number[id][0] == k {
					l.Fatalf("%s is given to one, while %s is open at another", d.Event.ID, id)
				}
			}
		}
	}
	for step := 0; len(done) < keys*each; step++ {
		if step > 100_000 {
			l.Fatalf("%d of %d are done", len(done), keys*each)
		}
		i := dice.IntN(len(members))
		m := members[i]
		first := map[int]string{} // the lowest open of each key: what a handler would work on
		for id := range m.open {
			if low, ok := first[number[id][0]]; !ok || number[id][1] < number[low][1] {
				first[number[id][0]] = id
			}
		}
		var settled []stream.Settlement
		for _, k := range slices.Sorted(maps.Keys(first)) {
			id := first[k]
			switch dice.IntN(5) {
			case 0, 1:
				settled = append(settled, m.say(id, stream.Acked))
			case 2:
				settled = append(settled, m.say(id, stream.Kept))
			}
		}
		say := func() {
			for _, s := range settled {
				for id, d := range m.last {
					if d.Ref == s.Ref && s.Verdict == stream.Acked {
						done[id] = true
					} else if d.Ref == s.Ref {
						failures[id]++
					}
				}
			}
		}
		switch dice.IntN(20) {
		case 0:
			l.Kill(l, "g", fmt.Sprint("m", i))
			members[i] = join(i)
		case 1:
			if err := m.feed.Leave(l.ctx, settled); err != nil {
				l.Fatal(err)
			}
			say()
			members[i] = join(i)
		default:
			want := stream.Want{N: dice.IntN(6), Idle: dice.IntN(2) == 0} // all that it has waits for something
			got, err := m.try(want, settled...)
			if err != nil {
				l.Fatal(err)
			}
			say()
			for _, d := range got {
				given(m, d)
			}
		}
	}
	for _, m := range members {
		m.quiet("all are done")
	}
}

func notWanted(l *lab) {
	if !l.features.Ordered {
		return
	}
	l.publish(event("t", "1", withKey("a")), event("t", "2", withKey("b")), event("t", "3", withKey("a")))
	if stream.Stripe("t", "a") == stream.Stripe("t", "b") {
		l.Fatal("the keys of this case share a stripe")
	}
	m := l.join(membership("g", "t", inMode(stream.Ordered)))
	got, err := m.try(stream.Want{N: 9, Not: []int16{stream.Stripe("t", "a")}})
	if err != nil || len(got) != 1 || got[0].Event.ID != "2" {
		l.Fatalf("%+v, %v", got, err)
	}
	got = m.need(2)
	equal(l, "wanted again", []string{got[0].Event.ID, got[1].Event.ID}, []string{"1", "3"})
}

func suspectKeepsPlace(l *lab) {
	if !l.features.Ordered {
		return
	}
	l.publish(event("t", "1", withKey("a")), event("t", "2", withKey("b")))
	for range 2 {
		m := l.join(membership("g", "t", inMode(stream.Ordered), named("m")))
		m.need(2)
		l.Kill(l, "g", "m")
	}
	l.publish(event("t", "3", withKey("a")), event("t", "4", withKey("c")))
	m := l.join(membership("g", "t", inMode(stream.Ordered)))
	var ids []string
	alone := map[string]bool{}
	for len(ids) < 4 {
		got := m.next(9, m.ackAll()...)
		for _, d := range got {
			ids = append(ids, d.Event.ID)
			alone[d.Event.ID] = d.Alone
			if d.Alone && len(got) > 1 {
				l.Errorf("%s is alone among %d", d.Event.ID, len(got))
			}
		}
	}
	equal(l, "alone", alone, map[string]bool{"1": true, "2": true, "3": false, "4": false})
	if slices.Index(ids, "3") < slices.Index(ids, "1") {
		l.Errorf("given as %q", ids)
	}
}

func retryRefused(l *lab) {
	if !l.features.Ordered {
		return
	}
	l.publish(event("t", "1"), event("t", "2"))
	m := l.join(membership("g", "t", inMode(stream.Ordered)))
	m.need(2)
	_, err := m.try(stream.Want{}, m.say("2", stream.Acked), m.say("1", stream.Retried))
	l.refused("a retry", "verdict", err)
	if err := m.feed.Leave(l.ctx, nil); err != nil {
		l.Fatal(err)
	}
	equal(l, "nothing of it has happened", l.join(membership("g", "t", inMode(stream.Ordered))).drain(1), []string{"1", "2"})
}
