package sqlite

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
	"github.com/pawlwork/pawl/stream"
)

var (
	_ store.Cursors   = (*Store)(nil)
	_ store.LogTopics = (*Store)(nil)
	_ store.Delays    = (*Store)(nil)
	_ store.Trimmer   = (*Store)(nil)
	_ store.TxLog     = within{}
	_ store.TxCursors = within{}
)

// Append accepts events, all or none, in order.
func (s *Store) Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	list, err := ask(ctx, s, len(drafts), func(t *jobs.Transition) ([]stream.PublishReply, error) { return log.Append(&t.Session, drafts) })
	return list, conflict(err)
}

// conflict is an error about versions in its own words: nothing is wrong with the file.
func conflict(err error) error {
	for e := err; errors.Is(e, stream.ErrVersion); e = errors.Unwrap(e) {
		if strings.HasPrefix(e.Error(), stream.ErrVersion.Error()) {
			return e
		}
	}
	return err
}

// AppendDue appends events whose time has come.
func (s *Store) AppendDue(ctx context.Context, limit int) (store.AppendDueReply, error) {
	next, err := view(ctx, s, log.NextDue) // most looks find nothing, and should not write
	if err != nil {
		return store.AppendDueReply{}, err
	}
	now, err := s.Now(ctx)
	if err != nil || next.IsZero() || next.After(now) {
		return store.AppendDueReply{Now: now, Next: next}, err
	}
	return ask(ctx, s, limit, func(t *jobs.Transition) (store.AppendDueReply, error) { return log.AppendDue(&t.Session, limit) })
}

// Trim removes events whose time is over.
func (s *Store) Trim(ctx context.Context, q store.TrimRequest) (store.TrimReply, error) {
	return ask(ctx, s, q.Limit, func(t *jobs.Transition) (store.TrimReply, error) { return log.Trim(&t.Session, &q) })
}

// TopicNamed is how a topic stands.
func (s *Store) TopicNamed(ctx context.Context, name string) (store.TopicState, error) {
	return view(ctx, s, func(c *lite.Snapshot) (store.TopicState, error) { return log.TopicNamed(c, name) })
}

// delayWatch is when the next delayed event was due, as the listener saw it last.
type delayWatch struct{ next atomic.Int64 }

// earlier reports whether one is due before that: who sleeps has to know.
func (w *delayWatch) earlier(next time.Time) bool {
	now := int64(0)
	if !next.IsZero() {
		now = next.UnixMicro()
	}
	was := w.next.Swap(now)
	return now != 0 && (was == 0 || now < was)
}

// Head is how far may be read now.
func (s *Store) Head(ctx context.Context) (stream.Position, error) { return view(ctx, s, log.Head) }

// Events reads what lies behind a position, not past the head.
func (s *Store) Events(ctx context.Context, q store.EventQuery) (store.EventPage, error) {
	if err := q.Check(); err != nil {
		return store.EventPage{}, err
	}
	return view(ctx, s, func(c *lite.Snapshot) (store.EventPage, error) { return log.Events(c, &q) })
}

// Topics lists topics that match, by name.
func (s *Store) Topics(ctx context.Context, pattern stream.TopicPattern, after string, n int) ([]store.TopicInfo, error) {
	if n <= 0 || n > store.MaxEventPage {
		n = store.MaxEventPage
	}
	return view(ctx, s, func(c *lite.Snapshot) ([]store.TopicInfo, error) { return log.Topics(c, pattern, after, n) })
}

// Append accepts events with the transaction.
func (w within) Append(ctx context.Context, drafts []stream.Publication) (receipts []stream.PublishReply, err error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	err = w.run(ctx, func(t *jobs.Transition) (err error) {
		receipts, err = whole(t, func() ([]stream.PublishReply, error) { return log.Append(&t.Session, drafts) })
		for i := range receipts { // as on every store: known when it has committed
			receipts[i].Position = stream.Position{}
		}
		return err
	})
	return receipts, conflict(err)
}

// OpenCursor makes the caller the holder of a cursor.
func (s *Store) OpenCursor(ctx context.Context, o store.CursorOpen) (store.CursorState, error) {
	if err := o.Check(); err != nil {
		return store.CursorState{}, err
	}
	return ask(ctx, s, 1, func(t *jobs.Transition) (store.CursorState, error) { return log.OpenCursor(&t.Session, &o) })
}

// MoveCursor commits where a cursor is.
func (s *Store) MoveCursor(ctx context.Context, m store.CursorMove) (store.CursorState, error) {
	return ask(ctx, s, 1, func(t *jobs.Transition) (store.CursorState, error) { return log.MoveCursor(&t.Session, &m) })
}

// MoveCursor commits where a cursor is with the transaction.
func (w within) MoveCursor(ctx context.Context, m store.CursorMove) (state store.CursorState, err error) {
	err = w.run(ctx, func(t *jobs.Transition) (err error) {
		state, err = log.MoveCursor(&t.Session, &m)
		return err
	})
	return state, err
}

// RenewCursor lengthens the lease of a holder.
func (s *Store) RenewCursor(ctx context.Context, m store.CursorMove) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return log.RenewCursor(&t.Session, &m) })
}

// FreeCursor ends the lease of a holder.
func (s *Store) FreeCursor(ctx context.Context, m store.CursorMove) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return log.FreeCursor(&t.Session, &m) })
}

// ListCursors lists cursors by name.
func (s *Store) ListCursors(ctx context.Context, after string, n int) ([]store.CursorInfo, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]store.CursorInfo, error) { return log.ListCursors(c, after, n) })
}

// CursorNamed is one of them.
func (s *Store) CursorNamed(ctx context.Context, name string) (store.CursorInfo, error) {
	return view(ctx, s, func(c *lite.Snapshot) (store.CursorInfo, error) { return log.CursorNamed(c, name) })
}

// SeekCursor puts a cursor somewhere else.
func (s *Store) SeekCursor(ctx context.Context, name string, to stream.Position, op store.Operator) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return log.SeekCursor(&t.Session, name, to, op) })
}

// DeleteCursor forgets a cursor.
func (s *Store) DeleteCursor(ctx context.Context, name string, op store.Operator) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return log.DeleteCursor(&t.Session, name, op) })
}

// TopicsBetween names the topics of events behind one position up to another.
func (s *Store) TopicsBetween(ctx context.Context, after, upto stream.Position, limit int) (names []string, all bool, err error) {
	err = s.read(ctx, func(c *lite.Snapshot) (err error) {
		names, all, err = log.TopicsBetween(c, after.Seq(), upto.Seq(), limit)
		return err
	})
	return names, all, err
}
