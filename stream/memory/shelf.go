package memory

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/pawlwork/pawl/stream"
)

// suspectAfter is from how many losses on an event comes alone.
const suspectAfter = 2

// entry is an event on its way through a group.
type entry struct {
	event            *stream.Event
	bad              error
	failures, losses int
	due              time.Time
	holder           *feed // of a suspect: it gets nothing else until it has this one
}

func (e *entry) seq() int64          { return e.event.Position.Seq() }
func (e *entry) stripe() int16       { return stream.Stripe(e.event.Topic, e.event.Key) }
func (e *entry) line() [2]string     { return [2]string{e.event.Topic, e.event.Key} }
func (e *entry) suspect() bool       { return e.losses >= suspectAfter }
func byDue(a, b *entry) int          { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.seq(), b.seq())) }
func byPosition(a, b *entry) int     { return cmp.Compare(a.seq(), b.seq()) }
func (e *entry) at(t time.Time) bool { return !e.due.After(t) }

// shelf is what waits for those who share it.
type shelf struct {
	next    int // of the log, not yet read
	ordered bool

	back []*entry // given back, by due time; not in ordered mode

	stripes [stream.Stripes]stripe // in ordered mode
}

// stripe is a part of an ordered shelf. It has an owner while something of it is open.
type stripe struct {
	waits []*entry // by position
	owner *feed
	open  int
}

// giveBack puts an entry where it is found again.
func (s *shelf) giveBack(e *entry) {
	list, order := &s.back, byDue
	if s.ordered {
		list, order = &s.stripes[e.stripe()].waits, byPosition
	}
	i, _ := slices.BinarySearchFunc(*list, e, order)
	*list = slices.Insert(*list, i, e)
}

// read is the next event of the log that the group takes.
func (s *shelf) read(m *feed) *entry {
	b := m.b
	for s.next < len(b.log) {
		e := b.log[s.next]
		s.next++
		if b.takes(m.group, e) {
			return &entry{event: e, bad: b.bad[e.Position.Seq()]}
		}
	}
	return nil
}

// take chooses what a member gets: a suspect alone, nothing while one waits for it to be done
// with what it has, or up to n others.
func (s *shelf) take(m *feed, want stream.Want, t time.Time) []*entry {
	if want.N < 1 || m.alone() {
		return nil
	}
	if x := s.suspect(m, want, t); x != nil {
		if !want.Idle {
			x.holder = m
			return nil
		}
		if x.holder != nil && x.holder != m {
			m.group.changed() // its holder may go on
		}
		x.holder = nil
		s.remove(x)
		return []*entry{x}
	}
	if s.ordered {
		return s.takeOrdered(m, want, t)
	}
	var list []*entry
	kept := s.back[:0]
	for _, e := range s.back {
		if len(list) < want.N && e.at(t) && !e.suspect() {
			list = append(list, e)
		} else {
			kept = append(kept, e)
		}
	}
	clear(s.back[len(kept):])
	s.back = kept
	for len(list) < want.N {
		e := s.read(m)
		if e == nil {
			break
		}
		list = append(list, e)
	}
	return list
}

// suspect is one that a member may be given, or is to be given when it is done with the rest:
// one that no other holds, or any where the member has nothing to do.
func (s *shelf) suspect(m *feed, want stream.Want, t time.Time) *entry {
	may := func(e *entry) bool {
		return e.suspect() && e.at(t) && (e.holder == nil || e.holder == m || want.Idle)
	}
	if !s.ordered {
		if i := slices.IndexFunc(s.back, may); i >= 0 {
			return s.back[i]
		}
		return nil
	}
	busy := map[[2]string]bool{}
	for _, h := range m.open {
		busy[h.line()] = true
	}
	for i := range s.stripes {
		if !s.stripes[i].isFor(m, int16(i), want) {
			continue
		}
		before := map[[2]string]bool{}
		for _, e := range s.stripes[i].waits {
			if first := !before[e.line()] && !busy[e.line()]; first && may(e) {
				return e
			}
			before[e.line()] = true
		}
	}
	return nil
}

func (p *stripe) isFor(m *feed, i int16, want stream.Want) bool {
	return (p.owner == nil || p.owner == m) && !slices.Contains(want.Not, i)
}

// remove takes an entry from where it waits.
func (s *shelf) remove(e *entry) {
	list := &s.back
	if s.ordered {
		list = &s.stripes[e.stripe()].waits
	}
	*list = slices.DeleteFunc(*list, func(x *entry) bool { return x == e })
}

// takeOrdered takes events of stripes that are the member's or nobody's, none before one of
// the same key that waits.
func (s *shelf) takeOrdered(m *feed, want stream.Want, t time.Time) (list []*entry) {
	stuck := map[[2]string]bool{}
	for i := range s.stripes {
		p := &s.stripes[i]
		if len(list) == want.N {
			return list
		}
		if !p.isFor(m, int16(i), want) {
			continue
		}
		var kept []*entry
		for _, e := range p.waits {
			if stuck[e.line()] || !e.at(t) || e.suspect() || len(list) == want.N {
				stuck[e.line()] = true
				kept = append(kept, e)
				continue
			}
			list = append(list, e)
		}
		p.waits = kept
	}
	for len(list) < want.N {
		e := s.read(m)
		if e == nil {
			break
		}
		i := e.stripe()
		if s.stripes[i].isFor(m, i, want) && !stuck[e.line()] {
			list = append(list, e)
		} else {
			s.stripes[i].waits = append(s.stripes[i].waits, e)
		}
	}
	return list
}

// opened and closed count what a stripe's owner has open of it; closed reports whether the
// stripe is free now.
func (s *shelf) opened(m *feed, e *entry) {
	if s.ordered {
		p := &s.stripes[e.stripe()]
		p.owner = m
		p.open++
	}
}

func (s *shelf) closed(e *entry) (free bool) {
	if !s.ordered {
		return false
	}
	p := &s.stripes[e.stripe()]
	if p.open--; p.open == 0 {
		p.owner = nil
	}
	return p.open == 0
}

// waiting goes through what was given back.
func (s *shelf) waiting() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		lists := [][]*entry{s.back}
		for i := range s.stripes {
			lists = append(lists, s.stripes[i].waits)
		}
		for _, list := range lists {
			for _, e := range list {
				if !yield(e) {
					return
				}
			}
		}
	}
}
