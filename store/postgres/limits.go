package postgres

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

var _ store.Limits = (*Store)(nil)

// Take takes a block of tokens, or says when to ask again.
func (s *Store) Take(ctx context.Context, of store.BucketName, q job.TakeRequest) (job.TakeReply, error) {
	return s.limits.Take(ctx, of, q)
}

// Drain empties a bucket for a time, or ends a drain.
func (s *Store) Drain(ctx context.Context, of store.BucketName, q job.TakeRequest, op *store.Operator) error {
	return s.limits.Drain(ctx, of, q, op)
}

// Buckets lists buckets of limits by key.
func (s *Store) Buckets(ctx context.Context, limits []string, after string, n int) ([]store.BucketInfo, error) {
	return s.limits.List(ctx, limits, after, n)
}
