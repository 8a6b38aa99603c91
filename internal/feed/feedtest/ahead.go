package feedtest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// RunAhead holds a store that reads ahead against what a turn promises: an event that was read
// before is given as if the turn had read it, or not by it. Each opener opens the same empty store.
func RunAhead(t *testing.T, open func(t *testing.T) (one, other store.Opener)) {
	for _, c := range []struct {
		name string
		run  func(l *aheadLab)
	}{
		{"P4_WhatWasReadIsTakenInOrder", (*aheadLab).inOrder},
		{"P4_ItIsTheEventThatATurnReads", (*aheadLab).same},
		{"P4_OnlyWhereTheShelfIs", (*aheadLab).onlyThere},
		{"P4_ANewTopicIsNotPassedOver", (*aheadLab).newTopic},
		{"P4_WhatDoesNotFitIsNotRead", (*aheadLab).fits},
		{"P10_ItIsBoundedByBytes", (*aheadLab).bytes},
		{"E11_WhatWasGivenBackComesFirst", (*aheadLab).givenBack},
		{"E8_NothingIsTakenWhilePaused", (*aheadLab).paused},
		{"E14_ALostMemberTakesNothing", (*aheadLab).lost},
		{"E10_AMemberReadsAhead", (*aheadLab).member},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, other := open(t)
			c.run(&aheadLab{t, groupsOf(t, one), groupsOf(t, other)})
		})
	}
}

// aheadLab is one store in two processes.
type aheadLab struct {
	t          *testing.T
	one, other Grouping
}

func groupsOf(t *testing.T, o store.Opener) Grouping { return backendOf(t, o).store }

func (l *aheadLab) publish(s Grouping, list ...stream.Publication) {
	l.t.Helper()
	if _, err := s.Append(l.t.Context(), list); err != nil {
		l.t.Fatal(err)
	}
}

// numbered are events of a topic, with numbers for ids.
func numbered(topic string, from, to int) (list []stream.Publication) {
	for i := from; i <= to; i++ {
		list = append(list, stream.Publication{Event: stream.Event{ID: fmt.Sprint(i), Topic: topic}})
	}
	return list
}

// reader is a hand that a case plays.
type reader struct {
	l     *aheadLab
	s     Grouping
	hand  store.Hand
	match stream.Matcher
	open  []int64
	reply store.TurnReply
}

func (l *aheadLab) join(s Grouping, f stream.Filter, member string) *reader {
	l.t.Helper()
	match, err := f.Matcher()
	if err != nil {
		l.t.Fatal(err)
	}
	w, err := s.Register(l.t.Context(), store.Worker{Label: member, LostAfter: time.Hour, Offer: job.Offer{}})
	if err != nil {
		l.t.Fatal(err)
	}
	h, err := s.JoinGroup(l.t.Context(), store.GroupJoin{Group: "g", Member: member, Filter: match.Filter, Worker: w})
	if err != nil {
		l.t.Fatal(err)
	}
	return &reader{l: l, s: s, hand: h, match: match}
}

// ahead reads behind where the last turn left the shelf.
func (r *reader) ahead(n int) *store.Ahead {
	r.l.t.Helper()
	room := make([]*store.Given, n)
	for i := range room {
		room[i] = new(store.Given)
	}
	a, err := r.s.(store.GroupAhead).ReadAhead(r.l.t.Context(), &r.match, max(r.reply.Upto, 0), room)
	if err != nil {
		r.l.t.Fatal(err)
	}
	return &a
}

// turn takes n, keeps all open but what goes back, and gives the ids.
func (r *reader) turn(n int, a *store.Ahead, back ...store.Returned) (ids []string) {
	r.l.t.Helper()
	for _, b := range back {
		r.open = slices.DeleteFunc(r.open, func(seq int64) bool { return seq == b.Seq })
	}
	var err error
	r.reply, err = r.s.Turn(r.l.t.Context(), &store.Turn{
		Hand: r.hand, Match: &r.match, Want: stream.Want{N: n}, Open: slices.Clone(r.open), Back: back, Settles: len(back) > 0, Ahead: a,
	})
	if err != nil {
		r.l.t.Fatal(err)
	}
	r.hand = r.reply.Hand
	given := make([]*store.Given, 0, n)
	for i := range r.reply.Given {
		given = append(given, &r.reply.Given[i])
	}
	if r.reply.Taken > 0 {
		given = append(given, a.Given[:r.reply.Taken]...)
	}
	for _, g := range given {
		if ids = append(ids, g.Event.ID); !g.Row {
			r.open = append(r.open, g.Event.Position.Seq())
		}
		if g.Event.Topic == "" {
			r.l.t.Errorf("%s has no topic", g.Event.ID)
		}
	}
	return ids
}

// want holds a turn against what it should give, and how much of it was read before.
func (l *aheadLab) want(what string, got []string, taken, wantTaken int, ids string) {
	l.t.Helper()
	if fmt.Sprint(got) != ids || taken != wantTaken {
		l.t.Errorf("%s: %v come, of which %d were read before; want %s, %d", what, got, taken, ids, wantTaken)
	}
}

func (l *aheadLab) inOrder() {
	l.publish(l.one, numbered("a", 1, 9)...)
	for i, f := range []stream.Filter{{Topic: "a"}, {Topic: ">"}, {Topic: "a.>"}} {
		if i == 2 { // several topics
			l.publish(l.one, numbered("a.x", 1, 3)...)
			l.publish(l.one, numbered("a.y", 4, 6)...)
			l.publish(l.one, numbered("a.x", 7, 9)...)
		}
		if err := l.one.DeleteGroup(context.Background(), "g", store.Operator{}); err != nil && i > 0 {
			l.t.Fatal(err)
		}
		r := l.join(l.one, f, "m")
		r.turn(2, nil)
		a := r.ahead(4)
		l.want("a turn for as many as were read", r.turn(4, a), r.reply.Taken, 4, "[3 4 5 6]")
		a = r.ahead(3)
		l.want("one for fewer", r.turn(2, a), r.reply.Taken, 2, "[7 8]")
		a.Place, a.Given = r.reply.Upto, a.Given[2:]
		l.want("one for the rest, and more", r.turn(5, a), r.reply.Taken, 1, "[9]")
		if !r.reply.More {
			l.t.Error("it does not say that there may be more")
		}
		l.want("one that reads", r.turn(5, nil), r.reply.Taken, 0, "[]")
	}
}

func (l *aheadLab) same() {
	list := numbered("a", 1, 4)
	list[1].Event = stream.Event{
		ID: "2", Topic: "a", Key: "k", Type: "t", Source: "s", Time: time.UnixMicro(1e15).UTC(), Headers: map[string]string{"h": "v"},
		Data: []byte("data"), ContentType: "text/plain", Schema: 7, Correlation: "c", Causation: "u", Trace: "t", TraceState: "s",
		Expires: time.UnixMicro(4e15).UTC(),
	}
	list[2].Key = "other"
	l.publish(l.one, list...)
	r := l.join(l.one, stream.Filter{Topic: "a"}, "m")
	r.turn(0, nil)
	if _, err := l.one.Head(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	a := r.ahead(4)
	r.turn(4, nil)
	if len(a.Given) != 4 || len(r.reply.Given) != 4 {
		l.t.Fatalf("%d are read ahead, and %d by a turn", len(a.Given), len(r.reply.Given))
	}
	for i := range a.Given {
		if !reflect.DeepEqual(*a.Given[i], r.reply.Given[i]) {
			l.t.Errorf("read ahead:   %+v\nby the turn:  %+v", *a.Given[i], r.reply.Given[i])
		}
	}
}

func (l *aheadLab) onlyThere() {
	l.publish(l.one, numbered("a", 1, 9)...)
	r, x := l.join(l.one, stream.Filter{Topic: "a"}, "m"), l.join(l.other, stream.Filter{Topic: "a"}, "x")
	r.turn(2, nil)
	a := r.ahead(3)
	l.want("another", x.turn(2, nil), 0, 0, "[3 4]")
	l.want("a turn that finds the shelf elsewhere", r.turn(3, a), r.reply.Taken, 0, "[5 6 7]")
	l.want("another", x.turn(9, nil), 0, 0, "[8 9]")
}

// A topic is made, by another process, whose events lie between those that are read.
func (l *aheadLab) newTopic() {
	l.publish(l.one, numbered("a.x", 1, 2)...)
	r := l.join(l.one, stream.Filter{Topic: "a.*"}, "m")
	r.turn(1, nil)
	l.publish(l.other, numbered("a.new", 3, 3)...)
	l.publish(l.other, numbered("a.x", 4, 5)...)
	if _, err := l.one.Head(l.t.Context()); err != nil { // it learns of the events, and not of the topic
		l.t.Fatal(err)
	}
	a := r.ahead(4)
	got := r.turn(4, a)
	l.want("a turn", got, 0, 0, "[2 3 4 5]")
}

func (l *aheadLab) fits() {
	list := numbered("a", 1, 9)
	for i := range list {
		list[i].Type = []string{"even", "odd"}[(i+1)%2]
	}
	l.publish(l.one, list...)
	r := l.join(l.one, stream.Filter{Topic: "a", Type: "odd"}, "m")
	r.turn(1, nil)
	l.want("a turn", r.turn(2, r.ahead(2)), r.reply.Taken, 2, "[3 5]")
	l.want("one more", r.turn(9, r.ahead(9)), r.reply.Taken, 2, "[7 9]")
}

func (l *aheadLab) bytes() {
	list := numbered("a", 1, 6)
	for i := range list {
		list[i].Data = make([]byte, 3<<20)
	}
	l.publish(l.one, list[:3]...)
	l.publish(l.one, list[3:]...)
	r := l.join(l.one, stream.Filter{Topic: "a"}, "m")
	r.turn(1, nil)
	a, all := r.ahead(5), 0
	for _, g := range a.Given {
		all += len(g.Event.Data)
	}
	if all > store.TurnBytes {
		l.t.Errorf("%d bytes were read", all)
	}
	got := r.turn(5, a)
	for range 5 {
		got = append(got, r.turn(5, nil)...)
	}
	l.want("turns", got, 0, 0, "[2 3 4 5 6]")
}

func (l *aheadLab) givenBack() {
	l.publish(l.one, numbered("a", 1, 9)...)
	r := l.join(l.one, stream.Filter{Topic: "a"}, "m")
	r.turn(2, nil)
	a := r.ahead(3)
	back := store.Returned{Seq: r.open[0], Failures: 1}
	got := r.turn(0, nil, back)
	got = append(got, r.turn(3, a)...)
	l.want("a turn", got, r.reply.Taken, 2, "[1 3 4]")
	l.want("the next", r.turn(2, nil), 0, 0, "[5 6]")
	a = r.ahead(3)
	back = store.Returned{Seq: r.open[0], Failures: 1, Delay: time.Hour}
	l.want("a turn that settles", r.turn(2, a, back), r.reply.Taken, 2, "[7 8]")
}

func (l *aheadLab) paused() {
	l.publish(l.one, numbered("a", 1, 9)...)
	r := l.join(l.one, stream.Filter{Topic: "a"}, "m")
	r.turn(2, nil)
	a := r.ahead(3)
	for _, paused := range []bool{true, false} {
		if err := l.other.PauseGroup(context.Background(), "g", paused, store.Operator{}); err != nil {
			l.t.Fatal(err)
		}
		if paused {
			l.want("a turn while it is paused", r.turn(3, a), r.reply.Taken, 0, "[]")
		}
	}
	l.want("a turn afterwards", r.turn(3, a), r.reply.Taken, 3, "[3 4 5]")
}

func (l *aheadLab) lost() {
	l.publish(l.one, numbered("a", 1, 9)...)
	r := l.join(l.one, stream.Filter{Topic: "a"}, "m")
	r.turn(2, nil)
	a := r.ahead(3)
	if n, err := l.other.LoseMembers(context.Background(), store.LoseMembers{Hands: []int64{r.hand.ID}}); n != 1 || err != nil {
		l.t.Fatalf("%d are lost, %v", n, err)
	}
	_, err := r.s.Turn(l.t.Context(), &store.Turn{Hand: r.hand, Match: &r.match, Want: stream.Want{N: 3}, Open: r.open, Ahead: a})
	if err == nil {
		l.t.Error("a lost member takes events")
	}
	x := l.join(l.other, stream.Filter{Topic: "a"}, "x")
	got := x.turn(9, nil)
	got = append(got, x.turn(9, nil)...)
	slices.Sort(got)
	l.want("another", got, 0, 0, "[1 2 3 4 5 6 7 8 9]")
}

// watched counts what is taken of what was read ahead.
type watched struct {
	Grouping
	taken int
}

func (w *watched) ReadAhead(ctx context.Context, m *stream.Matcher, place int64, room []*store.Given) (store.Ahead, error) {
	return w.Grouping.(store.GroupAhead).ReadAhead(ctx, m, place, room)
}

func (w *watched) Turn(ctx context.Context, t *store.Turn) (store.TurnReply, error) {
	r, err := w.Grouping.Turn(ctx, t)
	w.taken += r.Taken
	return r, err
}

// member reads ahead where it is alone, and stops where another takes from the shelf.
func (l *aheadLab) member() {
	l.publish(l.one, numbered("a", 1, 100)...)
	w := &watched{Grouping: l.one}
	match, err := stream.Filter{Topic: "a"}.Matcher()
	if err != nil {
		l.t.Fatal(err)
	}
	f, err := New(l.t, w).Join(l.t.Context(), stream.Membership{Group: "g", Member: "m", Match: match})
	if err != nil {
		l.t.Fatal(err)
	}
	var settled []stream.Settlement
	var got []string
	next := func() (n int) {
		list, err := f.Next(l.t.Context(), settled, stream.Want{N: 10})
		if err != nil {
			l.t.Fatal(err)
		}
		settled = nil
		for _, d := range list {
			got, settled = append(got, d.Event.ID), append(settled, stream.Settlement{Ref: d.Ref})
		}
		return len(list)
	}
	for range 5 {
		next()
	}
	if w.taken == 0 || w.taken > 30 {
		l.t.Errorf("%d of 50 were read ahead, want 30", w.taken)
	}
	x := l.join(l.other, stream.Filter{Topic: "a"}, "x")
	got = append(got, x.turn(10, nil)...)
	before := w.taken
	for range 2 {
		next()
		got = append(got, x.turn(5, nil)...)
	}
	if w.taken != before {
		l.t.Errorf("%d were read ahead beside another who takes", w.taken-before)
	}
	for next() > 0 {
	}
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprint(i+1))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		l.t.Errorf("%v come", got)
	}
}
