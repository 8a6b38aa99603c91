package streamtest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// patience is how long a case waits for what must come.
const patience = 10 * time.Second

// event is one that says little.
func event(topic, id string, edit ...func(*stream.Publication)) stream.Publication {
	e := stream.Publication{Event: stream.Event{ID: id, Topic: topic}}
	for _, f := range edit {
		f(&e)
	}
	return e
}

func withKey(key string) func(*stream.Publication) {
	return func(p *stream.Publication) { p.Key = key }
}

// some are events of one topic, whose ids are their numbers.
func some(topic string, n int, edit ...func(*stream.Publication)) (list []stream.Publication) {
	for i := range n {
		list = append(list, event(topic, fmt.Sprintf("%s-%d", topic, i), edit...))
	}
	return list
}

func idsOf(list []stream.Publication) (ids []string) {
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

func (l *lab) publish(list ...stream.Publication) []stream.PublishReply {
	l.Helper()
	replies, err := l.Backend.Publish(l.ctx, list)
	if err != nil || len(replies) != len(list) {
		l.Fatalf("publish: %d replies for %d, %v", len(replies), len(list), err)
	}
	return replies
}

// membership is one of a group of a pattern.
func membership(group, pattern string, edit ...func(*stream.Membership)) stream.Membership {
	match, err := stream.Filter{Topic: pattern}.Matcher()
	if err != nil {
		panic(err)
	}
	m := stream.Membership{Group: group, Match: match}
	for _, f := range edit {
		f(&m)
	}
	return m
}

func inMode(mode stream.Mode) func(*stream.Membership) {
	return func(m *stream.Membership) { m.Mode = mode }
}

func named(name string) func(*stream.Membership) {
	return func(m *stream.Membership) { m.Member = name }
}

func startingAt(s stream.Start) func(*stream.Membership) {
	return func(m *stream.Membership) { m.Start = s }
}

func lettersTo(topic string) func(*stream.Membership) {
	return func(m *stream.Membership) { m.DeadLetter = topic }
}

// player is a member that a case plays.
type player struct {
	l    *lab
	feed stream.Feed
	open map[string]int64 // ref by id
	last map[string]stream.Delivery
}

func (l *lab) join(m stream.Membership) *player {
	l.Helper()
	feed, err := l.Backend.Join(l.ctx, m)
	if err != nil {
		l.Fatalf("join: %v", err)
	}
	return &player{l, feed, map[string]int64{}, map[string]stream.Delivery{}}
}

// next settles and fetches once, and keeps book.
func (p *player) next(n int, settled ...stream.Settlement) (got []stream.Delivery) {
	p.l.Helper()
	got, err := p.try(stream.Want{N: n}, settled...)
	if err != nil {
		p.l.Fatalf("next: %v", err)
	}
	return got
}

// try is next with an error; it is idle when nothing stays open.
func (p *player) try(want stream.Want, settled ...stream.Settlement) ([]stream.Delivery, error) {
	p.l.Helper()
	over := map[int64]bool{}
	for _, s := range settled {
		over[s.Ref] = s.Verdict != stream.Kept
	}
	busy := false
	for _, ref := range p.open {
		busy = busy || !over[ref]
	}
	want.Idle = want.Idle || !busy
	got, err := p.feed.Next(p.l.ctx, settled, want)
	if err != nil {
		return nil, err
	}
	if len(got) > want.N {
		p.l.Errorf("%d deliveries, wanted were %d", len(got), want.N)
	}
	for id, ref := range p.open {
		if over[ref] {
			delete(p.open, id)
		}
	}
	for _, d := range got {
		if _, twice := p.open[d.Event.ID]; twice {
			p.l.Errorf("%s is given while it is open", d.Event.ID)
		}
		p.open[d.Event.ID], p.last[d.Event.ID] = d.Ref, d
	}
	return got, nil
}

// say is a settlement of an open delivery.
func (p *player) say(id string, v stream.Verdict) stream.Settlement {
	p.l.Helper()
	ref, ok := p.open[id]
	if !ok {
		p.l.Fatalf("%s is not open", id)
	}
	return stream.Settlement{Ref: ref, Verdict: v}
}

// ackAll settles all that is open.
func (p *player) ackAll() (list []stream.Settlement) {
	for _, ref := range p.open {
		list = append(list, stream.Settlement{Ref: ref})
	}
	return list
}

// need fetches until it has n, waiting for each.
func (p *player) need(n int, settled ...stream.Settlement) (got []stream.Delivery) {
	p.l.Helper()
	for {
		got = append(got, p.next(n-len(got), settled...)...)
		settled = nil
		if len(got) >= n {
			return got
		}
		if !p.wait(patience) {
			p.l.Fatalf("%d deliveries came of %d", len(got), n)
		}
	}
}

// drain gives the ids of all that comes, acked, in order.
func (p *player) drain(n int) (ids []string) {
	p.l.Helper()
	for {
		got := p.next(n, p.ackAll()...)
		for _, d := range got {
			ids = append(ids, d.Event.ID)
		}
		if len(got) == 0 {
			return ids
		}
	}
}

// quiet requires that nothing comes.
func (p *player) quiet(why string) {
	p.l.Helper()
	if got := p.next(100); len(got) > 0 {
		p.l.Errorf("%s: %d deliveries came, the first is %s", why, len(got), got[0].Event.ID)
	}
}

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// refused requires an error that names the field.
func (l *lab) refused(what, field string, err error) {
	l.Helper()
	if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), field) {
		l.Errorf("%s: %v, want a refusal that names the %s", what, err, field)
	}
}
