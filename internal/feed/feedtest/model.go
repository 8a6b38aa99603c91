package feedtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// RunModel plays random programs on groups of each mode: members join, take, say what became of
// it, leave and die; operators pause, seek and replay. A model that knows nothing but what
// stream.Feed and store.Groups promise says of each delivery whether it may come, and with
// which counts, and at the end that none is missing.
func RunModel(t *testing.T, programs int, open func(t *testing.T) store.Opener, around func(*testing.T, func(*testing.T))) {
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered, stream.FanOut} {
		t.Run(mode.String(), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			for n := range programs {
				around(t, func(t *testing.T) {
					b := backendOf(t, open(t))
					m := &model{
						t: t, b: b, mode: mode, dice: rand.New(rand.NewPCG(seed, uint64(n))),
						views: map[string]*view{}, members: map[string]*modelMember{},
					}
					m.play()
					if t.Failed() {
						t.Fatalf("seed %d, program %d:\n%s", seed, n, m.steps())
					}
				})
				if t.Failed() {
					return
				}
			}
		})
	}
}

// happening is one event as a view knows it.
type happening struct {
	number           int
	key              string
	done, parked     bool
	by               *modelMember // has it open
	failures, losses int
	alone            bool // it came alone, and was not kept since
}

// view is how far a group is, or in fan-out a member.
type view map[string]*happening

// modelMember is one that lives.
type modelMember struct {
	name string
	feed stream.Feed
	view *view
	refs map[string]int64
}

// model is one program.
type model struct {
	t       *testing.T
	b       *Backend
	mode    stream.Mode
	dice    *rand.Rand
	events  []happening
	at      []stream.Position
	views   map[string]*view // "" is that of the group
	members map[string]*modelMember
	dead    []*modelMember
	paused  bool
	told    []string
}

func (m *model) note(format string, args ...any) {
	m.told = append(m.told, fmt.Sprintf(format, args...))
}

func (m *model) steps() (text string) {
	for _, s := range m.told {
		text += s + "\n"
	}
	return text
}

func (m *model) play() {
	for range 60 {
		switch roll := m.dice.IntN(20); {
		case roll < 3:
			m.publish(1 + m.dice.IntN(6))
		case roll < 5:
			m.join()
		case roll == 5:
			m.leave()
		case roll == 6:
			m.die()
		case roll == 7:
			m.operate()
		case roll == 8 && len(m.dead) > 0:
			z := m.dead[m.dice.IntN(len(m.dead))]
			if _, err := z.feed.Next(m.t.Context(), nil, stream.Want{N: 3}); !errors.Is(err, stream.ErrFeedLost) {
				m.t.Errorf("a turn of %s, which is dead: %v", z.name, err)
			}
		default:
			m.turn()
		}
		if m.t.Failed() {
			return
		}
	}
	m.finish()
}

func (m *model) publish(n int) {
	var list []stream.Publication
	for range n {
		id, key := fmt.Sprint("e", len(m.events)), fmt.Sprint("k", m.dice.IntN(5))
		list = append(list, stream.Publication{Event: stream.Event{ID: id, Topic: "t", Key: key}})
		m.events = append(m.events, happening{number: len(m.events), key: key})
		for _, v := range m.views {
			(*v)[id] = &happening{number: len(m.events) - 1, key: key}
		}
	}
	replies, err := m.b.Publish(m.t.Context(), list)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, r := range replies {
		m.at = append(m.at, r.Position)
	}
	m.note("publish %d", n)
}

// fresh is a view of everything from a number on.
func (m *model) fresh(from int) *view {
	v := view{}
	for i := from; i < len(m.events); i++ {
		v[fmt.Sprint("e", i)] = &happening{number: i, key: m.events[i].key}
	}
	return &v
}

func (m *model) join() {
	name := fmt.Sprint("m", m.dice.IntN(4))
	match, err := stream.Filter{Topic: "t"}.Matcher()
	if err != nil {
		m.t.Fatal(err)
	}
	f, err := m.b.Join(m.t.Context(), stream.Membership{Group: "g", Member: name, Match: match, Mode: m.mode})
	m.note("join %s: %v", name, err)
	if m.members[name] != nil {
		if !errors.Is(err, stream.ErrMemberLives) {
			m.t.Errorf("a second %s joins: %v", name, err)
		}
		return
	}
	if err != nil {
		m.t.Fatal(err)
	}
	of := ""
	if m.mode == stream.FanOut {
		of = name
	}
	if m.views[of] == nil {
		m.views[of] = m.fresh(0)
	}
	m.members[name] = &modelMember{name, f, m.views[of], map[string]int64{}}
}

// some is a member, or none.
func (m *model) some() *modelMember {
	if len(m.members) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(m.members))
	return m.members[names[m.dice.IntN(len(names))]]
}

// verdicts are what a member says of some that it has open. In ordered mode it works on the
// first of each key.
func (m *model) verdicts(w *modelMember, most int) (list []stream.Settlement, said map[string]stream.Verdict) {
	said = map[string]stream.Verdict{}
	for _, id := range slices.Sorted(maps.Keys(w.refs)) {
		first := true
		for other := range w.refs {
			a, b := (*w.view)[other], (*w.view)[id]
			first = first && !(a.key == b.key && a.number < b.number)
		}
		if m.dice.IntN(3) == 0 || len(list) == most || m.mode == stream.Ordered && !first {
			continue
		}
		v := []stream.Verdict{stream.Acked, stream.Acked, stream.Acked, stream.Retried, stream.Kept, stream.Released, stream.Dead}[m.dice.IntN(7)]
		if m.mode == stream.Ordered && (v == stream.Retried || v == stream.Released) {
			v = stream.Kept
		}
		said[id] = v
		list = append(list, stream.Settlement{Ref: w.refs[id], Verdict: v, Reason: "so"})
	}
	return list, said
}

// take does what was said.
func (w *modelMember) take(said map[string]stream.Verdict) {
	for id, v := range said {
		h := (*w.view)[id]
		switch v {
		case stream.Acked:
			h.done = true
		case stream.Retried:
			h.failures++
		case stream.Kept:
			h.failures++
			h.alone = false
			continue
		case stream.Dead:
			h.parked = true
		}
		h.by, h.alone = nil, false
		delete(w.refs, id)
	}
}

func (m *model) turn() {
	w := m.some()
	if w == nil {
		return
	}
	settled, said := m.verdicts(w, 100)
	n := m.dice.IntN(5)
	busy := false
	for id := range w.refs {
		v, over := said[id]
		busy = busy || !over || v == stream.Kept
	}
	got, err := w.feed.Next(m.t.Context(), settled, stream.Want{N: n, Idle: !busy})
	if err != nil {
		m.t.Errorf("turn of %s: %v", w.name, err)
		return
	}
	w.take(said)
	m.note("%s says %v, wants %d, idle %v", w.name, said, n, !busy)
	m.given(w, got, n, busy)
}

// given holds deliveries against the model.
func (m *model) given(w *modelMember, got []stream.Delivery, n int, busy bool) {
	if len(got) > n || m.paused && len(got) > 0 {
		m.t.Errorf("%s gets %d, wanted were %d; paused: %v", w.name, len(got), n, m.paused)
	}
	for id := range w.refs {
		if (*w.view)[id].alone && len(got) > 0 {
			m.t.Errorf("%s gets more beside %s, which is alone", w.name, id)
		}
	}
	for _, d := range got {
		id := d.Event.ID
		h := (*w.view)[id]
		m.note("  %s gets %s: %d failures, %d losses, alone %v", w.name, id, d.Failures, d.Losses, d.Alone)
		switch {
		case h == nil || h.done || h.parked || h.by != nil:
			m.t.Errorf("%s gets %s: %+v", w.name, id, h)
			return
		case d.Failures != h.failures || d.Losses != h.losses:
			m.t.Errorf("%s has %d failures and %d losses, want %d and %d", id, d.Failures, d.Losses, h.failures, h.losses)
		case d.Alone != (h.losses >= 2):
			m.t.Errorf("%s was lost %d times, and is alone: %v", id, h.losses, d.Alone)
		case d.Alone && (len(got) > 1 || busy):
			m.t.Errorf("%s comes alone, with %d, to a busy member: %v", id, len(got), busy)
		}
		if m.mode == stream.Ordered {
			for other, o := range *w.view {
				if o.key == h.key && o.number != h.number && (o.by != nil && o.by != w || o.number < h.number && !o.done && !o.parked && o.by != w) {
					m.t.Errorf("%s comes to %s before %s is over", id, w.name, other)
				}
			}
		}
		h.by, h.alone = w, d.Alone
		w.refs[id] = d.Ref
	}
}

func (m *model) leave() {
	w := m.some()
	if w == nil {
		return
	}
	settled, said := m.verdicts(w, 100)
	if err := w.feed.Leave(m.t.Context(), settled); err != nil {
		m.t.Errorf("%s leaves: %v", w.name, err)
		return
	}
	m.note("%s leaves, says %v", w.name, said)
	w.take(said)
	m.drop(w, false)
	if m.mode == stream.FanOut {
		delete(m.views, w.name)
	}
}

// drop ends a member: what it has open waits.
func (m *model) drop(w *modelMember, lost bool) {
	for id := range w.refs {
		h := (*w.view)[id]
		if h.by = nil; lost {
			h.losses++
			if h.alone || len(w.refs) == 1 {
				h.failures++
			}
		}
		h.alone = false
	}
	delete(m.members, w.name)
	m.dead = append(m.dead, w)
}

func (m *model) die() {
	w := m.some()
	if w == nil {
		return
	}
	m.b.Kill(m.t, "g", w.name)
	m.note("%s dies with %v", w.name, slices.Sorted(maps.Keys(w.refs)))
	m.drop(w, true)
}

// operate pauses, resumes, replays or seeks.
func (m *model) operate() {
	if len(m.views) == 0 || len(m.at) == 0 {
		return
	}
	ctx, op := context.Background(), store.Operator{Name: "model"}
	parked := 0
	for _, v := range m.views {
		for _, h := range *v {
			if h.parked {
				parked++
			}
		}
	}
	var err error
	switch roll := m.dice.IntN(4); {
	case roll == 0 || m.paused:
		m.paused = !m.paused
		err = m.b.store.PauseGroup(ctx, "g", m.paused, op)
		m.note("paused %v", m.paused)
	case roll < 3 && parked > 0 && m.mode != stream.FanOut:
		var reply store.ReplayReply
		reply, err = m.b.store.Replay(ctx, store.GroupReplay{Group: "g", All: true}, op)
		m.note("replay: %+v", reply)
		if reply.Replayed != parked {
			m.t.Errorf("%d of %d are replayed", reply.Replayed, parked)
		}
		for _, v := range m.views {
			for _, h := range *v {
				if h.parked {
					h.parked, h.failures, h.losses = false, 0, 0
				}
			}
		}
	case roll == 3 && parked == 0:
		to := m.dice.IntN(len(m.at))
		err = m.b.store.SeekGroup(ctx, "g", m.at[to], op)
		m.note("seek behind e%d", to)
		for _, w := range m.members {
			m.dead = append(m.dead, w)
		}
		clear(m.members)
		for of := range m.views {
			m.views[of] = m.fresh(to + 1)
		}
	}
	if err != nil && !errors.Is(err, job.ErrNotFound) {
		m.t.Error(err)
	}
}

// finish has a last member of each view do all that is left.
func (m *model) finish() {
	if m.paused {
		m.paused = false
		if err := m.b.store.PauseGroup(context.Background(), "g", false, store.Operator{}); err != nil {
			m.t.Fatal(err)
		}
	}
	for range 40 * (1 + len(m.events)) {
		if len(m.members) == 0 {
			m.join()
		}
		w := m.some()
		var settled []stream.Settlement
		said := map[string]stream.Verdict{}
		for id, ref := range w.refs {
			said[id] = stream.Acked
			settled = append(settled, stream.Settlement{Ref: ref})
		}
		got, err := w.feed.Next(m.t.Context(), settled, stream.Want{N: 4, Idle: true})
		if err != nil {
			m.t.Fatal(err)
		}
		w.take(said)
		m.given(w, got, 4, false)
		if m.over() || m.t.Failed() {
			break
		}
	}
	for of, v := range m.views {
		if m.mode == stream.FanOut && m.members[of] == nil {
			continue // nobody has come back under its name
		}
		for id, h := range *v {
			if !h.done && !h.parked {
				m.t.Errorf("%s of %q is not done: %+v", id, of, *h)
			}
		}
	}
}

// over reports whether those who live have done everything.
func (m *model) over() bool {
	for _, w := range m.members {
		for _, h := range *w.view {
			if !h.done && !h.parked {
				return false
			}
		}
	}
	return true
}
