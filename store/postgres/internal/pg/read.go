package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Read runs statements that change nothing, sent together. They are made anew
// for each try, because a try may fail halfway through an answer.
func (s *DB) Read(ctx context.Context, make func() []*Statement) error {
	if err := s.Enter(ctx); err != nil {
		return err
	}
	defer s.Leave()
	return s.Retry(ctx, "read", Reading, func(ctx context.Context, _ bool) error { return s.Send(ctx, s.Work, freeLimits, make()...) })
}

// Usable refuses calls that have nothing to do and would be refused otherwise.
func (s *DB) Usable(ctx context.Context) error {
	err := s.Enter(ctx)
	if err == nil {
		s.Leave()
	}
	return err
}

// Now reads the clock over the connections of its caller: who only reads must not
// take one that a heartbeat needs.
func (s *DB) Now(ctx context.Context, pool *pgxpool.Pool) (now time.Time, err error) {
	err = s.Retry(ctx, "read", Reading, func(ctx context.Context, _ bool) error {
		return s.Send(ctx, pool, nil, &Statement{Text: "SELECT {now}", Each: func(scan Scan) error { return scan(&now) }})
	})
	return now.UTC(), err
}
