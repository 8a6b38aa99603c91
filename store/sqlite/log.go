package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
	"github.com/pawlwork/pawl/stream"
)

var (
	_ store.Log   = (*Store)(nil)
	_ store.TxLog = within{}
)

// Append accepts events, all or none, in order.
func (s *Store) Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	if err := stream.CheckPlain(drafts); err != nil {
		return nil, err
	}
	return ask(ctx, s, len(drafts), func(t *jobs.Transition) ([]stream.PublishReply, error) { return log.Append(&t.Session, drafts) })
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
	if err := stream.CheckPlain(drafts); err != nil {
		return nil, err
	}
	err = w.run(ctx, func(t *jobs.Transition) (err error) {
		receipts, err = log.Append(&t.Session, drafts)
		for i := range receipts { // as on every store: known when it has committed
			receipts[i].Position = stream.Position{}
		}
		return err
	})
	return receipts, err
}
