package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// write runs a transition through the writer.
func (s *Store) write(ctx context.Context, rows int, run func(*jobs.Transition) error) error {
	if s.spaces != nil && s.inside(ctx) { // of another namespace: its engine has not looked
		return store.ErrInsideTx
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	return s.writer.do(ctx, s, rows, run)
}

// ask is write for a transition that answers; nothing is answered with an error.
func ask[T any](ctx context.Context, s *Store, rows int, run func(*jobs.Transition) (T, error)) (T, error) {
	var answer, none T
	err := s.write(ctx, rows, func(t *jobs.Transition) (err error) {
		answer, err = run(t)
		return err
	})
	if err != nil {
		return none, err
	}
	return answer, nil
}

// transition begins one on a connection whose transaction is open.
func (s *Store) transition(c *lite.Conn) jobs.Transition {
	return jobs.Transition{Session: lite.NewSession(c, s.namespace, &s.clock), Rules: s.rules}
}

// read runs f in one snapshot. It may run beside the writer, except in memory,
// where a reader would block the writer's commit and so takes its turn with it.
func (s *Store) read(ctx context.Context, f func(*lite.Snapshot) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.file.Memory {
		return s.write(ctx, 0, func(t *jobs.Transition) error { return f(&t.Snapshot) })
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	c, err := s.readers.Take(ctx)
	if err != nil {
		return err
	}
	reads := lite.NewReading("a call of the engine", &s.clock)
	s.log.Readings.Begin(reads)
	defer func() {
		s.log.Readings.End(reads)
		s.readers.GiveBack(c)
	}()
	c.Raw.SetInterrupt(ctx)
	defer c.Raw.SetInterrupt(context.Background())
	err = c.InSnapshot(func() error { return f(&lite.Snapshot{Conn: c, Namespace: s.namespace, Clock: &s.clock}) })
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.file.Explain("read", err)
}

// view is read for what answers.
func view[T any](ctx context.Context, s *Store, f func(*lite.Snapshot) (T, error)) (answer T, err error) {
	err = s.read(ctx, func(c *lite.Snapshot) (err error) {
		answer, err = f(c)
		return err
	})
	return answer, err
}

// usable refuses calls after Close and calls whose time is over.
func (s *Store) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-s.closing:
		return store.ErrClosed
	default:
		return nil
	}
}
