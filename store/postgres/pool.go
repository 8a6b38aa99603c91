package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/store"
)

// idleBeforePing is how long a connection may be unused before it is tried
// first: an unnoticed restart of the server would make the next answer unknown.
const idleBeforePing = 30 * time.Second

// connect makes one of the store's own pools from the settings of the caller's,
// or is the caller's where that is all there is.
func (s *DB) connect(ctx context.Context, size int) (*pgxpool.Pool, error) {
	if s.onlyPool {
		return s.users, nil
	}
	config := s.users.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = int32(size), 0, 0
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > idleBeforePing }
	describe(config, s.pollOnly)
	if s.settled {
		s.settle(config)
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// enter counts a call in, so that Close waits for it. Calls after Close, and
// calls whose time is over, are refused.
func (s *DB) enter(ctx context.Context) error {
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

func (s *DB) leave() { s.calls.Done() }

// sql gives a text its schema and clock.
func (s *DB) sql(text string) string { return s.texts.of(text) }
