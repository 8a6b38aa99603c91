package postgres

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

var (
	_ store.Log   = (*Store)(nil)
	_ store.TxLog = (*within)(nil)
)

// Append accepts events, all or none, in order.
func (s *Store) Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	return s.log.Append(ctx, drafts)
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

// Append accepts events with the transaction.
func (w *within) Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	if err := w.enter(ctx); err != nil {
		return nil, err
	}
	defer w.s.pg.Leave()
	receipts, err := w.s.log.AppendIn(ctx, w.in, drafts)
	if err != nil {
		return nil, pg.Explain("append", w.foreign(err))
	}
	return receipts, nil
}
