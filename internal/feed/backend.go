package feed

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlwork/pawl/internal/tail"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Config says over what. Zero fields have the default in brackets.
type Config struct {
	Store store.Groups
	Tail  *tail.Tail
	Hub   *wake.Hub
	// Worker is whose lease memberships have. It waits until that is registered.
	Worker func(ctx context.Context) (job.WorkerID, error)
	Bounds stream.Bounds
	// Poll is how often what nobody told of is looked for, once for all members [5 s].
	Poll time.Duration
	// Ahead is from how many deliveries of one turn on the next are read ahead [64]: with fewer it
	// is not the reading that takes time.
	Ahead int
}

// Backend is a store's groups, as one process sees them.
type Backend struct {
	config Config
	groups store.Groups
	news   news

	mu  sync.Mutex
	was map[[2]string]int64 // hands that were lost here, by group and member
}

// New makes one.
func New(c Config) *Backend {
	c.Poll = cmp.Or(c.Poll, 5*time.Second)
	c.Ahead = cmp.Or(c.Ahead, 64)
	b := &Backend{config: c, groups: c.Store, was: map[[2]string]int64{}}
	b.news.init(b)
	return b
}

// Features implements stream.Backend.
func (b *Backend) Features() stream.Features {
	_, later := b.groups.(store.Delays)
	return stream.Features{IDs: true, Versions: later, Delay: later, Ordered: true, Positions: true, Types: true}
}

// Publish implements stream.Backend.
func (b *Backend) Publish(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	for i := range drafts {
		if err := drafts[i].Check(b.config.Bounds); err != nil {
			return nil, fmt.Errorf("event %d of %d: %w", i+1, len(drafts), err)
		}
	}
	replies, err := b.groups.Append(ctx, drafts)
	if err == nil {
		b.config.Hub.Ready(store.Hint{Subject: store.SubjectTopic})
	}
	return replies, err
}

// Join implements stream.Backend.
func (b *Backend) Join(ctx context.Context, m stream.Membership) (stream.Feed, error) {
	if err := m.Check(b.Features()); err != nil {
		return nil, err
	}
	start, err := tail.Place(ctx, b.groups, m.Start)
	if err != nil {
		return nil, err
	}
	m.Member = cmp.Or(m.Member, "member-"+rand.Text())
	worker, err := b.config.Worker(ctx)
	if err != nil {
		return nil, err
	}
	key := [2]string{m.Group, m.Member}
	b.mu.Lock()
	was := b.was[key]
	b.mu.Unlock()
	hand, err := b.groups.JoinGroup(ctx, store.GroupJoin{
		Group: m.Group, Member: m.Member, Filter: m.Match.Filter, Mode: m.Mode, Start: start, Worker: worker, Was: was,
	})
	if errors.Is(err, store.ErrPosition) {
		err = job.Invalid("start", start.Debug(), "must be a position of this log")
	}
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	delete(b.was, key)
	b.mu.Unlock()
	b.news.changed()
	f := &Feed{b: b, membership: m, hand: hand, seen: seen{next: -1}}
	f.ahead = ahead{match: &f.membership.Match, from: b.config.Ahead, place: -1}
	if m.Mode != stream.Ordered {
		f.ahead.store, _ = b.groups.(store.GroupAhead)
	}
	return f, nil
}

// lost remembers the hand of a member that has to join again.
func (b *Backend) lost(m *stream.Membership, hand int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.was[[2]string{m.Group, m.Member}] = hand
}

// Nudge has the groups of members that wait looked at.
func (b *Backend) Nudge() { b.news.changed() }
