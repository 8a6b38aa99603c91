package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// feed is one member of a group: a stream.Feed. All of it is under the backend's lock.
type feed struct {
	b       *Backend
	group   *group
	name    string
	letters string // topic of dead letters, or none
	shelf   *shelf
	open    map[int64]*held
	seen    int // version of the group that a Next had
	gone    bool
	lease   *time.Timer
}

// held is an entry that a member has open.
type held struct {
	*entry
	alone bool // it came alone, and was not kept since
}

// alone reports whether the member has one that came alone.
func (m *feed) alone() bool {
	for _, h := range m.open {
		if h.alone {
			return true
		}
	}
	return false
}

// Next implements stream.Feed.
func (m *feed) Next(ctx context.Context, settled []stream.Settlement, want stream.Want) ([]stream.Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	t := now()
	if err := m.check(settled); err != nil {
		return nil, err
	}
	if m.lease != nil {
		m.lease.Reset(m.b.options.Lease)
	}
	m.b.appendDue(t)
	m.settle(settled, t)
	list := m.shelf.take(m, want, t)
	if len(list) < want.N {
		m.seen = m.group.version
	}
	given := make([]stream.Delivery, len(list))
	for i, e := range list {
		m.b.refs++
		h := &held{e, e.suspect()}
		m.open[m.b.refs] = h
		m.shelf.opened(m, e)
		given[i] = h.delivery()
		given[i].Ref = m.b.refs
	}
	return given, nil
}

func (h *held) delivery() stream.Delivery {
	e := copyOf(h.event)
	return stream.Delivery{Event: &e, Failures: h.failures, Losses: h.losses, Alone: h.alone, Bad: h.bad}
}

// check refuses a call before anything of it has happened.
func (m *feed) check(settled []stream.Settlement) error {
	if m.gone {
		return stream.ErrFeedLost
	}
	for i, s := range settled {
		switch {
		case s.Verdict > stream.Released:
			return job.Invalid("verdict", uint8(s.Verdict), "must be one that there is")
		case s.Verdict == stream.Retried && m.shelf.ordered:
			return job.Invalid("verdict", s.Verdict, "must be kept in ordered mode: those behind it would overtake it")
		case slices.ContainsFunc(settled[:i], func(x stream.Settlement) bool { return x.Ref == s.Ref }):
			return job.Invalid("ref", s.Ref, "must be settled once in a call")
		}
	}
	return nil
}

func (m *feed) settle(settled []stream.Settlement, t time.Time) {
	news := false
	for _, s := range settled {
		h := m.open[s.Ref]
		if h == nil {
			continue
		}
		switch s.Verdict {
		case stream.Kept:
			h.failures++
			h.alone = false
			continue
		case stream.Retried:
			h.failures++
			news = m.giveBack(h.entry, t, s.Delay) || news
		case stream.Released:
			news = m.giveBack(h.entry, t, s.Delay) || news
		case stream.Dead:
			m.bury(h, s, t)
		}
		delete(m.open, s.Ref)
		news = m.shelf.closed(h.entry) || news
	}
	if news {
		m.group.changed()
	}
}

// giveBack lets an entry come again after a delay.
func (m *feed) giveBack(e *entry, t time.Time, delay time.Duration) (news bool) {
	e.due = t.Add(max(delay, 0))
	m.shelf.giveBack(e)
	if delay > 0 {
		time.AfterFunc(delay, func() {
			m.b.mu.Lock()
			defer m.b.mu.Unlock()
			m.group.changed()
		})
	}
	return delay <= 0
}

// bury stores a dead letter, in the step that settles the delivery.
func (m *feed) bury(h *held, s stream.Settlement, t time.Time) {
	d := h.delivery()
	d.Failures = max(d.Failures, s.Failures)
	if m.letters == "" {
		m.group.parked = append(m.group.parked, stream.Parked{Delivery: d, Group: m.group.name, Reason: s.Reason, At: t})
		return
	}
	letter := d.Letter(m.letters, m.group.name, s.Reason, t)
	m.b.appendEvent(&accepted{event: &letter.Event}, t)
}

// Wait implements stream.Feed.
func (m *feed) Wait(ctx context.Context) error {
	for {
		m.b.mu.Lock()
		gone, news, changed := m.gone, m.group.news, m.group.version != m.seen
		m.b.mu.Unlock()
		switch {
		case gone:
			return stream.ErrFeedLost
		case changed:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-news:
		}
	}
}

// Leave implements stream.Feed.
func (m *feed) Leave(ctx context.Context, settled []stream.Settlement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	if err := m.check(settled); err != nil {
		return err
	}
	t := now()
	m.settle(settled, t)
	for _, ref := range slices.Sorted(maps.Keys(m.open)) {
		h := m.open[ref]
		m.giveBack(h.entry, t, 0)
		m.shelf.closed(h.entry)
	}
	delete(m.group.places, m.name)
	m.end()
	return nil
}

// lose is what happens to a member that is taken for dead.
func (m *feed) lose(t time.Time) {
	for _, ref := range slices.Sorted(maps.Keys(m.open)) {
		h := m.open[ref]
		h.losses++
		if h.alone || len(m.open) == 1 {
			h.failures++
		}
		m.giveBack(h.entry, t, 0)
		m.shelf.closed(h.entry)
	}
	m.end()
}

// end removes the member. Suspects that waited for it wait for anybody.
func (m *feed) end() {
	m.gone = true
	clear(m.open)
	delete(m.group.members, m.name)
	if m.lease != nil {
		m.lease.Stop()
	}
	for e := range m.shelf.waiting() {
		if e.holder == m {
			e.holder = nil
		}
	}
	m.group.changed()
}

func (m *feed) String() string { return fmt.Sprintf("%s of %s", m.name, m.group.name) }
