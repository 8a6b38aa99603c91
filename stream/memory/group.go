package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// group is what is kept of one while it has no members, too.
type group struct {
	name    string
	match   stream.Matcher
	mode    stream.Mode
	shelf   *shelf            // of all; nil in fan-out
	places  map[string]*shelf // fan-out: of members, by name, lost ones too
	members map[string]*feed
	parked  []stream.Parked
	version int           // counts what may be news for a member that waits
	news    chan struct{} // closed by the next change
}

// Join implements stream.Backend.
func (b *Backend) Join(ctx context.Context, m stream.Membership) (stream.Feed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := m.Check(b.Features()); err != nil {
		return nil, err
	}
	if at, ok := m.Start.Position(); ok && !at.IsZero() && at.Epoch() != epoch {
		return nil, job.Invalid("start", at.Debug(), "must be a position of this log")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.appendDue(now())
	g := b.groups[m.Group]
	if g == nil {
		g = &group{
			name: m.Group, match: m.Match, mode: m.Mode, news: make(chan struct{}),
			members: map[string]*feed{}, places: map[string]*shelf{},
		}
		if m.Mode != stream.FanOut {
			g.shelf = b.newShelf(g, m.Start)
		}
		b.groups[m.Group] = g
	}
	if g.mode != m.Mode {
		return nil, job.Invalid("mode", m.Mode, fmt.Sprintf("must be %v, as the group %s has it", g.mode, g.name))
	}
	if g.match.Filter != m.Match.Filter {
		rule := fmt.Sprintf("must be the filter of the group %s: %+v", g.name, g.match.Filter)
		return nil, job.Invalid("topics", m.Match.Filter, rule)
	}
	if m.Member == "" {
		m.Member = "member-" + rand.Text()
	}
	if g.members[m.Member] != nil {
		return nil, fmt.Errorf("%w: %s of %s", stream.ErrMemberLives, m.Member, g.name)
	}
	f := &feed{b: b, group: g, name: m.Member, letters: m.DeadLetter, shelf: g.shelf, open: map[int64]*held{}, seen: -1}
	if g.mode == stream.FanOut {
		if g.places[m.Member] == nil {
			g.places[m.Member] = b.newShelf(g, m.Start)
		}
		f.shelf = g.places[m.Member]
	}
	if b.options.Lease > 0 {
		f.lease = time.AfterFunc(b.options.Lease, func() { b.kill(f) })
	}
	g.members[m.Member] = f
	g.changed()
	return f, nil
}

// newShelf begins where a start says.
func (b *Backend) newShelf(g *group, start stream.Start) *shelf {
	s := &shelf{ordered: g.mode == stream.Ordered}
	if at, ok := start.Position(); ok {
		s.next = int(min(at.Seq(), int64(len(b.log))))
	} else if t, ok := start.Time(); ok {
		s.next = sort.Search(len(b.log), func(i int) bool { return !b.log[i].Appended.Before(t) })
	} else if start.IsEnd() {
		s.next = len(b.log)
	}
	return s
}

// takes reports whether an event is for the group. One that cannot be read is for every group
// of its topic: nobody can tell what type it is of.
func (b *Backend) takes(g *group, e *stream.Event) bool {
	return g.match.Match(e) || b.bad[e.Position.Seq()] != nil && g.match.Pattern.Match(e.Topic)
}

// changed wakes the members that wait.
func (g *group) changed() {
	g.version++
	close(g.news)
	g.news = make(chan struct{})
}

// Kill takes a member for dead, as when its lease has run out: what it had open goes to
// others, each with a loss. It reports whether there was such a member.
func (b *Backend) Kill(group, name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.groups[group]
	if g == nil || g.members[name] == nil {
		return false
	}
	g.members[name].lose(now())
	return true
}

func (b *Backend) kill(m *feed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.group.members[m.name] == m {
		m.lose(now())
	}
}

// Members are the names of those that live, in order.
func (b *Backend) Members(group string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.groups[group]; g != nil {
		return slices.Sorted(maps.Keys(g.members))
	}
	return nil
}

// Parked is what a group has given up and has no topic for, oldest first.
func (b *Backend) Parked(group string) []stream.Parked {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.groups[group]; g != nil {
		return slices.Clone(g.parked)
	}
	return nil
}

func copyOf(e *stream.Event) stream.Event {
	c := *e
	c.Data, c.Headers = slices.Clone(e.Data), cloneHeaders(e.Headers)
	return c
}

func cloneHeaders(h map[string]string) map[string]string { return maps.Clone(h) }
