package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// read runs statements that change nothing, sent together. They are made anew
// for each try, because a try may fail halfway through an answer.
func (s *DB) read(ctx context.Context, make func() []*statement) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.retry(ctx, "read", reading, func(ctx context.Context, _ bool) error { return s.send(ctx, s.work, freeLimits, make()...) })
}

// usable refuses calls that have nothing to do and would be refused otherwise.
func (s *DB) usable(ctx context.Context) error {
	err := s.enter(ctx)
	if err == nil {
		s.leave()
	}
	return err
}

// now reads the clock over the connections of its caller: who only reads must not
// take one that a heartbeat needs.
func (s *DB) now(ctx context.Context, pool *pgxpool.Pool) (now time.Time, err error) {
	err = s.retry(ctx, "read", reading, func(ctx context.Context, _ bool) error {
		return s.send(ctx, pool, nil, &statement{text: "SELECT {now}", each: func(scan scan) error { return scan(&now) }})
	})
	return now.UTC(), err
}
