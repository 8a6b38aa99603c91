package postgres

import (
	"cmp"
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

var (
	_ store.Groups       = (*Store)(nil)
	_ store.GroupAhead   = (*Store)(nil)
	_ store.GroupObjects = (*Store)(nil)
	_ store.TxGroups     = (*within)(nil)
)

// JoinGroup makes a member of a group.
func (s *Store) JoinGroup(ctx context.Context, j store.GroupJoin) (store.Hand, error) {
	if err := j.Check(); err != nil {
		return store.Hand{}, err
	}
	return s.groups.Join(ctx, &j)
}

// Turn settles and fetches.
func (s *Store) Turn(ctx context.Context, t *store.Turn) (store.TurnReply, error) {
	if err := t.Check(); err != nil {
		return store.TurnReply{}, err
	}
	return s.groups.Turn(ctx, t)
}

// ReadAhead reads what lies behind a place of a shelf.
func (s *Store) ReadAhead(ctx context.Context, match *stream.Matcher, place int64, room []*store.Given) (store.Ahead, error) {
	return s.groups.ReadAhead(ctx, match, place, room)
}

// LeaveGroup ends a membership.
func (s *Store) LeaveGroup(ctx context.Context, t *store.Turn) error { return s.groups.Leave(ctx, t) }

// LoseMembers takes members for dead.
func (s *Store) LoseMembers(ctx context.Context, l store.LoseMembers) (int, error) {
	l.Limit = cmp.Or(l.Limit, store.MaxLoseMembers)
	return s.groups.Lose(ctx, &l)
}

// GroupNews says what has happened to hands.
func (s *Store) GroupNews(ctx context.Context, hands []store.Hand) ([]store.HandNews, error) {
	return s.groups.News(ctx, hands)
}

// AckDelivery acknowledges a delivery with the transaction.
func (w *within) AckDelivery(ctx context.Context, h store.Hand, seq int64) error {
	if err := w.enter(ctx); err != nil {
		return err
	}
	defer w.s.pg.Leave()
	if err := w.s.groups.AckIn(ctx, w.in, &h, seq); err != nil {
		return pg.Explain("acknowledge", w.foreign(err))
	}
	return nil
}

// ListGroups lists groups by name.
func (s *Store) ListGroups(ctx context.Context, after string, n int) ([]store.GroupInfo, error) {
	return s.groups.List(ctx, after, n)
}

// GroupNamed is one of them.
func (s *Store) GroupNamed(ctx context.Context, name string) (store.GroupInfo, error) {
	return s.groups.Named(ctx, name)
}

// GroupMembers lists members of a group.
func (s *Store) GroupMembers(ctx context.Context, name string, after int64, n int) ([]store.MemberInfo, error) {
	return s.groups.Members(ctx, name, after, n)
}

// ParkedEvents lists what a group has given up and has no topic for.
func (s *Store) ParkedEvents(ctx context.Context, name string, after store.ParkedAfter, n int) ([]stream.Parked, error) {
	return s.groups.Parked(ctx, name, after, n)
}

// Replay gives a group events again that it has given up.
func (s *Store) Replay(ctx context.Context, r store.GroupReplay, op store.Operator) (store.ReplayReply, error) {
	return s.groups.Replay(ctx, &r, op)
}

// SeekGroup puts a group somewhere else.
func (s *Store) SeekGroup(ctx context.Context, name string, to stream.Position, op store.Operator) error {
	return s.groups.Seek(ctx, name, to, op)
}

// PauseGroup stops a group from taking events, or lets it go on.
func (s *Store) PauseGroup(ctx context.Context, name string, paused bool, op store.Operator) error {
	return s.groups.Pause(ctx, name, paused, op)
}

// DeleteGroup forgets a group.
func (s *Store) DeleteGroup(ctx context.Context, name string, op store.Operator) error {
	return s.groups.Delete(ctx, name, op)
}
