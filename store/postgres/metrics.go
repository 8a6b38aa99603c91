package postgres

import (
	"context"

	"github.com/pawlwork/pawl/store"
)

var _ store.Metrics = (*Store)(nil)

// AddMetrics keeps what a process has measured, once.
func (s *Store) AddMetrics(ctx context.Context, f store.MetricFlush) error {
	if err := store.CheckFlush(f); err != nil {
		return err
	}
	return s.metrics.Add(ctx, &f)
}

// ReadMetrics adds up the rows of a range.
func (s *Store) ReadMetrics(ctx context.Context, q store.MetricQuery) (store.MetricReply, error) {
	if err := store.CheckMetricQuery(q); err != nil {
		return store.MetricReply{}, err
	}
	return s.metrics.Read(ctx, q)
}

// RollUp merges up to limit rows whose time has come.
func (s *Store) RollUp(ctx context.Context, limit int) (store.RollUpReply, error) {
	return s.metrics.RollUp(ctx, limit)
}
