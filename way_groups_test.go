package pawl_test

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Groups on the way to the store: a process that is cut off reaches none.

var (
	_ store.Groups       = (*way)(nil)
	_ store.GroupObjects = (*way)(nil)
)

func (w *way) groups() (store.Groups, error) {
	if w.cutOff.Load() {
		return nil, errCutOff
	}
	return w.Store.(store.Groups), nil
}

// Beat fails where the process is cut off: its lease runs out.
func (w *way) Beat(ctx context.Context, b store.Beat) (store.BeatReply, error) {
	if w.silent.Load() {
		return store.BeatReply{}, errCutOff
	}
	return w.Store.Beat(ctx, b)
}

func (w *way) JoinGroup(ctx context.Context, j store.GroupJoin) (store.Hand, error) {
	g, err := w.groups()
	if err != nil {
		return store.Hand{}, err
	}
	return g.JoinGroup(ctx, j)
}

func (w *way) Turn(ctx context.Context, t *store.Turn) (store.TurnReply, error) {
	g, err := w.groups()
	if err != nil {
		return store.TurnReply{}, err
	}
	w.turns.Add(1)
	return g.Turn(ctx, t)
}

func (w *way) LeaveGroup(ctx context.Context, t *store.Turn) error {
	g, err := w.groups()
	if err != nil {
		return err
	}
	return g.LeaveGroup(ctx, t)
}

func (w *way) LoseMembers(ctx context.Context, l store.LoseMembers) (int, error) {
	g, err := w.groups()
	if err != nil {
		return 0, err
	}
	return g.LoseMembers(ctx, l)
}

func (w *way) GroupNews(ctx context.Context, hands []store.Hand) ([]store.HandNews, error) {
	g, err := w.groups()
	if err != nil {
		return nil, err
	}
	return g.GroupNews(ctx, hands)
}

func (w *way) objects() store.GroupObjects { return w.Store.(store.GroupObjects) }

func (w *way) ListGroups(ctx context.Context, after string, n int) ([]store.GroupInfo, error) {
	return w.objects().ListGroups(ctx, after, n)
}

func (w *way) GroupNamed(ctx context.Context, name string) (store.GroupInfo, error) {
	return w.objects().GroupNamed(ctx, name)
}

func (w *way) GroupMembers(ctx context.Context, name string, after int64, n int) ([]store.MemberInfo, error) {
	return w.objects().GroupMembers(ctx, name, after, n)
}

func (w *way) ParkedEvents(ctx context.Context, name string, after store.ParkedAfter, n int) ([]stream.Parked, error) {
	return w.objects().ParkedEvents(ctx, name, after, n)
}

func (w *way) Replay(ctx context.Context, r store.GroupReplay, op store.Operator) (store.ReplayReply, error) {
	return w.objects().Replay(ctx, r, op)
}

func (w *way) SeekGroup(ctx context.Context, name string, to stream.Position, op store.Operator) error {
	return w.objects().SeekGroup(ctx, name, to, op)
}

func (w *way) PauseGroup(ctx context.Context, name string, paused bool, op store.Operator) error {
	return w.objects().PauseGroup(ctx, name, paused, op)
}

func (w *way) DeleteGroup(ctx context.Context, name string, op store.Operator) error {
	return w.objects().DeleteGroup(ctx, name, op)
}

func (w *way) TopicsBetween(ctx context.Context, after, upto stream.Position, limit int) ([]string, bool, error) {
	return w.Store.(store.LogTopics).TopicsBetween(ctx, after, upto, limit)
}
