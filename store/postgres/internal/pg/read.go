package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/store"
)

// Browse runs statements that may read much, for people who wait for an answer: lists,
// counts, search. They have connections of their own, for which they wait in turn, end
// when their time is over, and what took too long is not begun again. They are made anew for each try, as in Read.
func (s *DB) Browse(ctx context.Context, make func() []*Statement) error {
	if err := s.Enter(ctx); err != nil {
		return err
	}
	defer s.Leave()
	return s.RetryWithin(ctx, s.ReadLimit+answerTime, "read", Reading, func(ctx context.Context, _ bool) error {
		err := s.Send(ctx, s.Reading, &Limits{free: true, every: s.ReadLimit}, make()...)
		if err != nil && (IsOverTime(err) || ctx.Err() != nil) {
			return Fault{Err: fmt.Errorf("%w: to read, or to wait for others that read, took longer than Options.ReadLimit, %v: %w", store.ErrBusy, s.ReadLimit, err)}.AsError()
		}
		return err
	})
}

// answerTime is how long the answer to a read may take beside its statements.
const answerTime = time.Second

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
func (s *DB) Now(ctx context.Context, pool *Pool) (now time.Time, err error) {
	err = s.Retry(ctx, "read", Reading, func(ctx context.Context, _ bool) error {
		return s.Send(ctx, pool, nil, &Statement{Text: "SELECT {now}", Each: func(scan Scan) error { return scan(&now) }})
	})
	return now.UTC(), err
}
