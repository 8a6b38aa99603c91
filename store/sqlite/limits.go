package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/limits"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

var _ store.Limits = (*Store)(nil)

// Take takes a block of tokens, or says when to ask again.
func (s *Store) Take(ctx context.Context, of store.BucketName, q job.TakeRequest) (job.TakeReply, error) {
	if err := store.CheckTake(of, &q); err != nil {
		return job.TakeReply{}, err
	}
	return ask(ctx, s, 1, func(t *jobs.Transition) (job.TakeReply, error) { return limits.Take(&t.Session, of, &q) })
}

// Drain empties a bucket for a time, or ends a drain.
func (s *Store) Drain(ctx context.Context, of store.BucketName, q job.TakeRequest, op *store.Operator) error {
	if err := store.CheckTake(of, &q); err != nil {
		return err
	}
	return s.write(ctx, 1, func(t *jobs.Transition) error { return limits.Drain(&t.Session, of, &q, op) })
}

// Buckets lists buckets of limits by key.
func (s *Store) Buckets(ctx context.Context, names []string, after string, n int) ([]store.BucketInfo, error) {
	n = min(n, store.MaxBuckets)
	return view(ctx, s, func(c *lite.Snapshot) ([]store.BucketInfo, error) { return limits.List(c, names, after, n) })
}
