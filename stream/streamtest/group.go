package streamtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/stream"
)

func groups() []testCase {
	return []testCase{
		{"E8_TwoGroupsSeeEverything", twoGroups},
		{"E8_CompetingMembersShare", competingShare},
		{"E8_FanOutGivesEachAll", fanOut},
		{"E8_WhereAGroupStarts", starts},
		{"E8_AGroupKeepsItsPlace", keepsPlace},
		{"E8_NamesOfMembers", names},
		{"E16_EveryFilterIsEnforcedOrRefused", filters},
		{"E16_AnotherModeOrFilterIsRefused", anotherMode},
		{"E16_WhatCannotBeHadIsRefusedByName", cannotBeHad},
		{"E10_WaitReturnsWithNewsOnly", waits},
		{"E10_WhatIsGivenBackIsNews", givenBackIsNews},
		{"E10_LargeEventsLoseNoneBehindThem", largeEvents},
		{"E16_BehindManyThatAreNotChosen", manyOthers},
	}
}

func twoGroups(l *lab) {
	list := append(some("orders.placed", 40), some("orders.paid", 40)...)
	l.publish(list[:30]...)
	a, b := l.join(membership("a", "orders.*")), l.join(membership("b", "orders.*"))
	l.publish(list[30:]...)
	l.publish(some("mails", 3)...)
	equal(l, "a", a.drain(7), idsOf(list))
	equal(l, "b", b.drain(64), idsOf(list))
	a.quiet("all is acked")
}

func competingShare(l *lab) {
	list := some("a", 60)
	members := []*player{}
	for range 3 {
		members = append(members, l.join(membership("g", "a")))
	}
	l.publish(list...)
	var got []string
	for i := 0; len(got) < len(list); i++ {
		for _, d := range members[i%3].need(4, members[i%3].ackAll()...) {
			got = append(got, d.Event.ID)
		}
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(idsOf(list)))
	equal(l, "given to all three together", got, want)
	for _, m := range members {
		m.quiet("all are given")
	}
}

func fanOut(l *lab) {
	list := some("a", 20)
	l.publish(list[:10]...)
	first := l.join(membership("g", "a", inMode(stream.FanOut), named("first")))
	late := l.join(membership("g", "a", inMode(stream.FanOut), named("late"), startingAt(stream.FromEnd())))
	l.publish(list[10:]...)
	equal(l, "first", first.drain(8), idsOf(list))
	equal(l, "late", late.drain(8), idsOf(list[10:]))

	// What one fails with is nobody else's, and a lost member goes on under its name.
	more := event("a", "more")
	l.publish(more)
	late.need(1)
	late.next(0, late.say("more", stream.Retried))
	equal(l, "first", first.drain(8), []string{"more"})
	equal(l, "again", late.need(1)[0].Failures, 1)
	l.Kill(l, "g", "late")
	if _, err := late.try(stream.Want{N: 1}); !errors.Is(err, stream.ErrFeedLost) {
		l.Errorf("a member that was lost: %v", err)
	}
	first.quiet("what another member had open")
	back := l.join(membership("g", "a", inMode(stream.FanOut), named("late"), startingAt(stream.FromEnd())))
	d := back.need(1)[0]
	equal(l, "under its name", []any{d.Event.ID, d.Losses}, []any{"more", 1})
	if err := back.feed.Leave(l.ctx, nil); err != nil {
		l.Error(err)
	}
	again := l.join(membership("g", "a", inMode(stream.FanOut), named("late"), startingAt(stream.FromEnd())))
	again.quiet("a place that was left is forgotten")
}

func starts(l *lab) {
	list := some("a", 6)
	l.publish(list[:2]...)
	l.Pass(20 * time.Millisecond)
	replies := l.publish(list[2:4]...)
	head := l.join(membership("probe", "a")).need(4)
	l.Pass(20 * time.Millisecond)
	l.publish(list[4])
	cases := map[string]struct {
		start stream.Start
		want  []stream.Publication
	}{
		"beginning": {stream.FromStart(), list}, "end": {stream.FromEnd(), list[5:]},
		"nowhere": {stream.FromPosition(stream.Position{}), list},
	}
	if l.features.Positions {
		cases["position"] = struct {
			start stream.Start
			want  []stream.Publication
		}{stream.FromPosition(replies[0].Position), list[3:]}
		cases["time"] = struct {
			start stream.Start
			want  []stream.Publication
		}{stream.FromTime(head[2].Event.Appended), list[2:]}
	}
	members := map[string]*player{}
	for name, c := range cases {
		members[name] = l.join(membership(name, "a", startingAt(c.start)))
		members[name].next(0)
	}
	l.publish(list[5])
	for name, c := range cases {
		equal(l, name, members[name].drain(4), idsOf(c.want))
	}
	if l.features.Positions {
		_, err := l.Backend.Join(l.ctx, membership("other", "a", startingAt(stream.FromPosition(stream.At(987_654, 1)))))
		l.refused("a position of another log", "start", err)
	}
}

func keepsPlace(l *lab) {
	list := some("a", 9)
	l.publish(list[:5]...)
	m := l.join(membership("g", "a"))
	m.need(3)
	if err := m.feed.Leave(l.ctx, []stream.Settlement{m.say("a-0", stream.Acked), m.say("a-2", stream.Acked)}); err != nil {
		l.Fatal(err)
	}
	l.publish(list[5:]...)
	got := l.join(membership("g", "a", startingAt(stream.FromEnd()))).drain(4)
	slices.Sort(got)
	equal(l, "after all had left", got, []string{"a-1", "a-3", "a-4", "a-5", "a-6", "a-7", "a-8"})
}

func names(l *lab) {
	l.join(membership("g", "a"))
	l.join(membership("g", "a")) // names that were made are told apart
	one := l.join(membership("g", "a", named("one")))
	if _, err := l.Backend.Join(l.ctx, membership("g", "a", named("one"))); !errors.Is(err, stream.ErrMemberLives) {
		l.Errorf("a second member of one name: %v", err)
	}
	l.join(membership("other", "a", named("one")))
	if err := one.feed.Leave(l.ctx, nil); err != nil {
		l.Error(err)
	}
	l.join(membership("g", "a", named("one")))
}

func filters(l *lab) {
	noon := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	l.publish(
		event("orders.placed", "yes", func(p *stream.Publication) { p.Key, p.Type, p.Source, p.Time = "eu-7", "order", "shop", noon }),
		event("orders.placed", "no", func(p *stream.Publication) { p.Time = noon.Add(-time.Hour) }),
		event("mails", "never"))
	for field, f := range map[string]stream.Filter{
		"key": {Key: "eu-7"}, "key prefix": {KeyPrefix: "eu-"}, "type": {Type: "order"}, "source": {Source: "shop"}, "after": {After: noon},
	} {
		f.Topic = "orders.>"
		match, err := f.Matcher()
		if err != nil {
			l.Fatal(err)
		}
		feed, err := l.Backend.Join(l.ctx, stream.Membership{Group: "by " + field, Match: match})
		if err != nil {
			if field == "type" && l.features.Types {
				l.Errorf("types are declared, and refused: %v", err)
			}
			l.refused(field, field, err)
			continue
		}
		p := &player{l, feed, map[string]int64{}, map[string]stream.Delivery{}}
		equal(l, field, p.drain(9), []string{"yes"})
	}
}

// until gives the ids of what comes, acked, in order, until so many came.
func (p *player) until(want, n int) (ids []string) {
	p.l.Helper()
	for range 100 {
		for _, d := range p.next(n, p.ackAll()...) {
			ids = append(ids, d.Event.ID)
		}
		if len(ids) >= want {
			p.next(0, p.ackAll()...)
			break
		}
	}
	return ids
}

// largeEvents are more than a backend may give at once.
func largeEvents(l *lab) {
	data := make([]byte, 1_000_000)
	want := map[string][]string{}
	for i := range 10 {
		for _, topic := range []string{"big.a", "big.b"} {
			id := fmt.Sprint(topic, "-", i)
			l.publish(event(topic, id, func(p *stream.Publication) { p.Data = data }))
			for _, pattern := range []string{topic, "big.*", ">"} {
				want[pattern] = append(want[pattern], id)
			}
		}
	}
	for _, pattern := range []string{"big.a", "big.*", ">"} {
		m := l.join(membership("of "+pattern, pattern))
		equal(l, pattern, m.until(len(want[pattern]), 100), want[pattern])
		m.quiet("all came")
	}
}

// manyOthers are more than a backend may look at for one that is chosen.
func manyOthers(l *lab) {
	for from := 0; from < 2300; from += 100 {
		list := make([]stream.Publication, 100)
		for i := range list {
			n := from + i
			list[i] = event([]string{"a", "b"}[n/2%2], fmt.Sprint(n), func(p *stream.Publication) {
				if p.Type = "other"; n == 0 || n == 1 || n == 1500 || n == 2297 {
					p.Type = "order"
				}
			})
		}
		l.publish(list...)
	}
	for pattern, want := range map[string][]string{"a": {"0", "1", "1500", "2297"}, "*": {"0", "1", "1500", "2297"}, ">": {"0", "1", "1500", "2297"}, "b": nil} {
		f := stream.Filter{Topic: pattern, Type: "order"}
		match, err := f.Matcher()
		if err != nil {
			l.Fatal(err)
		}
		feed, err := l.Backend.Join(l.ctx, stream.Membership{Group: "of " + pattern, Match: match})
		if err != nil {
			l.refused("type", "type", err)
			continue
		}
		p := &player{l, feed, map[string]int64{}, map[string]stream.Delivery{}}
		equal(l, pattern, p.until(len(want), 2), want)
		p.quiet("all came")
	}
}

func anotherMode(l *lab) {
	l.join(membership("g", "orders.*"))
	_, err := l.Backend.Join(l.ctx, membership("g", "orders.*", inMode(stream.FanOut)))
	l.refused("another mode", "mode", err)
	_, err = l.Backend.Join(l.ctx, membership("g", "orders.>"))
	l.refused("other topics", "topics", err)
	l.join(membership("g", "orders.*", startingAt(stream.FromEnd())))
}

func cannotBeHad(l *lab) {
	ask := func(m stream.Membership) error {
		_, err := l.Backend.Join(l.ctx, m)
		return err
	}
	l.refused("no group", "group", ask(membership("", "a")))
	l.refused("a wrong name", "member", ask(membership("g", "a", named("x\x00"))))
	l.refused("a mode that is none", "mode", ask(membership("g", "a", inMode(9))))
	l.refused("a pattern for letters", "dead-letter topic", ask(membership("g", "a", lettersTo("a.*"))))
	l.refused("its own letters", "dead-letter topic", ask(membership("g", "a.*", lettersTo("a.dead"))))
	if !l.features.Ordered {
		l.refused("order", "mode", ask(membership("g", "a", inMode(stream.Ordered))))
	}
	if !l.features.Positions {
		l.refused("a position", "start", ask(membership("g", "a", startingAt(stream.FromPosition(stream.At(1, 1))))))
		l.refused("a time", "start", ask(membership("g", "a", startingAt(stream.FromTime(time.Unix(1, 0))))))
	}
	l.join(membership("g", "a")) // nothing of it has made the group
}

func waits(l *lab) {
	a, b := l.join(membership("g", "a")), l.join(membership("g", "a"))
	for _, m := range []*player{a, b} {
		m.quiet("nothing is published")
	}
	settle := func(m *player) {
		for range 20 { // what happened meanwhile may be news; that nothing did is none
			if m.next(1); !m.wait(50 * time.Millisecond) {
				return
			}
		}
		l.Error("there is always news, and never an event")
	}
	settle(a)
	settle(b)
	l.publish(event("a", "1"))
	if !a.wait(patience) || !b.wait(patience) {
		l.Fatal("a publish is no news")
	}
	a.need(1)
	settle(b)
	retry := a.say("1", stream.Retried)
	retry.Delay = 200 * time.Millisecond
	since := watch() // before: the delay counts from within the call
	a.next(0, retry)
	d := b.need(1)
	equal(l, "again", fmt.Sprint(d[0].Event.ID, d[0].Failures), "11")
	if took := since(); took < 190*time.Millisecond {
		l.Errorf("it was due after 200 ms and came after %v", took)
	}
	settle(a)
	l.publish(event("a", "2"))
	a.next(0) // it wanted nothing, so that is news still
	if !a.wait(patience) {
		l.Error("what a Next did not want is no news")
	}
	a.need(1)
	settle(b)
	if err := a.feed.Leave(l.ctx, nil); err != nil {
		l.Fatal(err)
	}
	if !b.wait(patience) {
		l.Error("what was given back is no news")
	}
	b.need(1)
}

// Whoever has looked, and found nothing, is woken by what another gives back after that.
func givenBackIsNews(l *lab) {
	a, b := l.join(membership("g", "a")), l.join(membership("g", "a"))
	l.publish(event("a", "1"))
	a.need(1)
	for i, v := range []stream.Verdict{stream.Retried, stream.Released} {
		for range 20 {
			if b.next(1); !b.wait(50 * time.Millisecond) {
				break
			}
		}
		a.next(0, a.say("1", v))
		if !b.wait(patience) {
			l.Fatalf("what is %v is no news", v)
		}
		b.need(1)
		if i == 0 {
			a, b = b, a
		}
	}
}
