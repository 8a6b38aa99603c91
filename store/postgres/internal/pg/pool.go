package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/store"
)

// idleBeforePing is how long a connection may be unused before it is tried
// first: an unnoticed restart of the server would make the next answer unknown.
const idleBeforePing = 30 * time.Second

// connect makes the store's own pool from the settings of the caller's, or is the
// caller's where that is all there is.
func (s *Link) connect(ctx context.Context, size int) (*pgxpool.Pool, error) {
	if s.OnlyPool {
		return s.Users, nil
	}
	config := s.Users.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = int32(size), 0, 0
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > idleBeforePing }
	Describe(config, s.PollOnly)
	if s.Settled {
		s.settle(config)
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// Enter counts a call in, so that Close waits for it. Calls after Close, and
// calls whose time is over, are refused.
func (s *DB) Enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

func (s *DB) Leave() { s.calls.Done() }

// SQL gives a text its schema and clock.
func (s *Link) SQL(text string) string { return s.Texts.of(text) }
