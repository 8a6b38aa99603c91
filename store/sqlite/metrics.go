package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/metrics"
)

var _ store.Metrics = (*Store)(nil)

// AddMetrics keeps what a process has measured, once.
func (s *Store) AddMetrics(ctx context.Context, f store.MetricFlush) error {
	if err := store.CheckFlush(f); err != nil {
		return err
	}
	return s.write(ctx, len(f.Rows), func(t *jobs.Transition) error { return metrics.Add(&t.Session, &f) })
}

// ReadMetrics adds up the rows of a range.
func (s *Store) ReadMetrics(ctx context.Context, q store.MetricQuery) (store.MetricReply, error) {
	if err := store.CheckMetricQuery(q); err != nil {
		return store.MetricReply{}, err
	}
	return view(ctx, s, func(c *lite.Snapshot) (store.MetricReply, error) { return metrics.Read(c, q) })
}

// RollUp merges up to limit rows whose time has come. It writes only where there are some.
func (s *Store) RollUp(ctx context.Context, limit int) (store.RollUpReply, error) {
	due, err := view(ctx, s, metrics.Due)
	if err != nil || !due {
		return store.RollUpReply{}, err
	}
	return ask(ctx, s, limit, func(t *jobs.Transition) (store.RollUpReply, error) { return metrics.RollUp(&t.Session, limit) })
}
