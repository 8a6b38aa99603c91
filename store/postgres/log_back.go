package postgres

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
)

var _ store.LogBack = (*Store)(nil)

// EventsBack reads what lies up to a position, the newest first, not past the head.
func (s *Store) EventsBack(ctx context.Context, q store.EventQuery) (store.EventPage, error) {
	return s.log.EventsBack(ctx, q)
}

// NewestEvents says when the newest event of each of some topics was appended.
func (s *Store) NewestEvents(ctx context.Context, topics []store.TopicInfo) (map[int32]time.Time, error) {
	return s.log.NewestEvents(ctx, topics)
}
