package sqlite

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
)

var _ store.LogBack = (*Store)(nil)

// EventsBack reads what lies up to a position, the newest first.
func (s *Store) EventsBack(ctx context.Context, q store.EventQuery) (store.EventPage, error) {
	if err := q.Check(); err != nil {
		return store.EventPage{}, err
	}
	return view(ctx, s, func(c *lite.Snapshot) (store.EventPage, error) { return log.EventsBack(c, &q) })
}

// NewestEvents says when the newest event of each of some topics was appended.
func (s *Store) NewestEvents(ctx context.Context, topics []store.TopicInfo) (map[int32]time.Time, error) {
	return view(ctx, s, func(c *lite.Snapshot) (map[int32]time.Time, error) { return log.NewestEvents(c, topics) })
}
