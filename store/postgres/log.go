package postgres

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

var (
	_ store.Cursors   = (*Store)(nil)
	_ store.LogTopics = (*Store)(nil)
	_ store.Delays    = (*Store)(nil)
	_ store.Trimmer   = (*Store)(nil)
	_ store.TxLog     = (*within)(nil)
	_ store.TxCursors = (*within)(nil)
)

// Append accepts events, all or none, in order.
func (s *Store) Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	return s.log.Append(ctx, drafts)
}

// AppendDue appends events whose time has come.
func (s *Store) AppendDue(ctx context.Context, limit int) (store.AppendDueReply, error) {
	return s.log.AppendDue(ctx, limit)
}

// Trim removes events whose time is over.
func (s *Store) Trim(ctx context.Context, q store.TrimRequest) (store.TrimReply, error) {
	return s.log.Trim(ctx, q)
}

// TopicNamed is how a topic stands.
func (s *Store) TopicNamed(ctx context.Context, name string) (store.TopicState, error) {
	return s.log.TopicNamed(ctx, name)
}

// Head is how far may be read now.
func (s *Store) Head(ctx context.Context) (stream.Position, error) { return s.log.Head(ctx) }

// Events reads what lies behind a position, not past the head.
func (s *Store) Events(ctx context.Context, q store.EventQuery) (store.EventPage, error) {
	return s.log.Events(ctx, q)
}

// Topics lists topics that match, by name.
func (s *Store) Topics(ctx context.Context, pattern stream.TopicPattern, after string, n int) ([]store.TopicInfo, error) {
	return s.log.Topics(ctx, pattern, after, n)
}

// Append accepts events with the transaction. Its commit cannot be seen from here, so
// readers are told soon to look.
func (w *within) Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	if err := w.enter(ctx); err != nil {
		return nil, err
	}
	defer w.s.pg.Leave()
	receipts, err := w.append(ctx, drafts)
	if err == nil {
		w.s.log.Left(receipts)
	}
	return receipts, err
}

func (w *within) append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	receipts, err := w.s.log.AppendIn(ctx, w.in, drafts)
	if err != nil {
		return nil, pg.Explain("append", w.foreign(err))
	}
	return receipts, nil
}

// Append accepts events with the transaction; others hear of them when it has committed.
func (o *ownTx) Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	if err := o.enter(ctx); err != nil {
		return nil, err
	}
	defer o.s.pg.Leave()
	receipts, err := o.append(ctx, drafts)
	o.published.Add(receipts)
	return receipts, err
}

// OpenCursor makes the caller the holder of a cursor.
func (s *Store) OpenCursor(ctx context.Context, o store.CursorOpen) (store.CursorState, error) {
	return s.log.OpenCursor(ctx, o)
}

// MoveCursor commits where a cursor is.
func (s *Store) MoveCursor(ctx context.Context, m store.CursorMove) (store.CursorState, error) {
	return s.log.MoveCursor(ctx, m)
}

// MoveCursor commits where a cursor is with the transaction.
func (w *within) MoveCursor(ctx context.Context, m store.CursorMove) (store.CursorState, error) {
	if err := w.enter(ctx); err != nil {
		return store.CursorState{}, err
	}
	defer w.s.pg.Leave()
	state, err := w.s.log.MoveCursorIn(ctx, w.in, m)
	if err != nil {
		return state, pg.Explain("move a cursor", w.foreign(err))
	}
	return state, nil
}

// RenewCursor lengthens the lease of a holder.
func (s *Store) RenewCursor(ctx context.Context, m store.CursorMove) error {
	return s.log.RenewCursor(ctx, m)
}

// FreeCursor ends the lease of a holder.
func (s *Store) FreeCursor(ctx context.Context, m store.CursorMove) error {
	return s.log.FreeCursor(ctx, m)
}

// ListCursors lists cursors by name.
func (s *Store) ListCursors(ctx context.Context, after string, n int) ([]store.CursorInfo, error) {
	return s.log.ListCursors(ctx, after, n)
}

// CursorNamed is one of them.
func (s *Store) CursorNamed(ctx context.Context, name string) (store.CursorInfo, error) {
	return s.log.CursorNamed(ctx, name)
}

// SeekCursor puts a cursor somewhere else.
func (s *Store) SeekCursor(ctx context.Context, name string, to stream.Position, op store.Operator) error {
	return s.log.SeekCursor(ctx, name, to, op)
}

// DeleteCursor forgets a cursor.
func (s *Store) DeleteCursor(ctx context.Context, name string, op store.Operator) error {
	return s.log.DeleteCursor(ctx, name, op)
}

// TopicsBetween names the topics of events behind one position up to another.
func (s *Store) TopicsBetween(ctx context.Context, after, upto stream.Position, limit int) ([]string, bool, error) {
	return s.log.TopicsBetween(ctx, after, upto, limit)
}
