package sqlite

import (
	"cmp"
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/groups"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/stream"
)

var (
	_ store.Groups     = (*Store)(nil)
	_ store.GroupAhead = (*Store)(nil)
	_ store.TxGroups   = within{}
)

// JoinGroup makes a member of a group.
func (s *Store) JoinGroup(ctx context.Context, j store.GroupJoin) (store.Hand, error) {
	if err := j.Check(); err != nil {
		return store.Hand{}, err
	}
	return ask(ctx, s, 1, func(t *jobs.Transition) (store.Hand, error) { return groups.Join(&t.Session, &j) })
}

// Turn settles and fetches.
func (s *Store) Turn(ctx context.Context, turn *store.Turn) (store.TurnReply, error) {
	if err := turn.Check(); err != nil {
		return store.TurnReply{}, err
	}
	return ask(ctx, s, 1+turn.Want.N, func(t *jobs.Transition) (store.TurnReply, error) { return groups.Turn(&t.Session, turn) })
}

// ReadAhead reads what lies behind a place of a shelf.
func (s *Store) ReadAhead(ctx context.Context, match *stream.Matcher, place int64, room []*store.Given) (store.Ahead, error) {
	return view(ctx, s, func(c *lite.Snapshot) (store.Ahead, error) { return groups.ReadAhead(c, match, place, room) })
}

// LeaveGroup ends a membership.
func (s *Store) LeaveGroup(ctx context.Context, turn *store.Turn) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return groups.Leave(&t.Session, turn) })
}

// LoseMembers takes members for dead.
func (s *Store) LoseMembers(ctx context.Context, l store.LoseMembers) (int, error) {
	l.Limit = cmp.Or(l.Limit, store.MaxLoseMembers)
	return ask(ctx, s, 1, func(t *jobs.Transition) (int, error) { return groups.Lose(&t.Session, &l) })
}

// GroupNews says what has happened to hands.
func (s *Store) GroupNews(ctx context.Context, hands []store.Hand) ([]store.HandNews, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]store.HandNews, error) { return groups.News(c, c.Clock.Now(), hands) })
}

// AckDelivery acknowledges a delivery with the transaction.
func (w within) AckDelivery(ctx context.Context, h store.Hand, seq int64) error {
	return w.run(ctx, func(t *jobs.Transition) error { return groups.Ack(&t.Session, &h, seq) })
}

var _ store.GroupObjects = (*Store)(nil)

// ListGroups lists groups by name.
func (s *Store) ListGroups(ctx context.Context, after string, n int) ([]store.GroupInfo, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]store.GroupInfo, error) { return groups.List(c, after, n) })
}

// GroupNamed is one of them.
func (s *Store) GroupNamed(ctx context.Context, name string) (store.GroupInfo, error) {
	return view(ctx, s, func(c *lite.Snapshot) (store.GroupInfo, error) { return groups.Named(c, name) })
}

// GroupMembers lists members of a group.
func (s *Store) GroupMembers(ctx context.Context, name string, after int64, n int) ([]store.MemberInfo, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]store.MemberInfo, error) {
		g, err := groups.GroupOf(c, name)
		if err != nil {
			return nil, err
		}
		return groups.Members(c, g.ID, after, n)
	})
}

// ParkedEvents lists what a group has given up and has no topic for.
func (s *Store) ParkedEvents(ctx context.Context, name string, after store.ParkedAfter, n int) ([]stream.Parked, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]stream.Parked, error) {
		g, err := groups.GroupOf(c, name)
		if err != nil {
			return nil, err
		}
		return groups.Parked(c, &g, after, n)
	})
}

// Replay gives a group events again that it has given up.
func (s *Store) Replay(ctx context.Context, r store.GroupReplay, op store.Operator) (store.ReplayReply, error) {
	return ask(ctx, s, 1, func(t *jobs.Transition) (store.ReplayReply, error) { return groups.Replay(&t.Session, &r, op) })
}

// SeekGroup puts a group somewhere else.
func (s *Store) SeekGroup(ctx context.Context, name string, to stream.Position, op store.Operator) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return groups.Seek(&t.Session, name, to, op) })
}

// PauseGroup stops a group from taking events, or lets it go on.
func (s *Store) PauseGroup(ctx context.Context, name string, paused bool, op store.Operator) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return groups.Pause(&t.Session, name, paused, op) })
}

// DeleteGroup forgets a group.
func (s *Store) DeleteGroup(ctx context.Context, name string, op store.Operator) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return groups.Delete(&t.Session, name, op) })
}
