package sqlite

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/hints"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lists"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// Get returns the jobs that exist, live or archived, in the order asked.
func (s *Store) Get(ctx context.Context, ids []job.ID) ([]job.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return view(ctx, s, func(c *lite.Snapshot) ([]job.Job, error) { return jobs.Get(c, ids) })
}

// List pages through jobs.
func (s *Store) List(ctx context.Context, f store.Filter, p store.Page) (listed store.Listed, err error) {
	if err := p.Check(f); err != nil {
		return listed, err
	}
	return view(ctx, s, func(c *lite.Snapshot) (store.Listed, error) { return lists.List(c, f, p) })
}

// Count counts the jobs a filter matches, up to cap (0 means MaxCounted).
func (s *Store) Count(ctx context.Context, f store.Filter, cap int) (store.Counted, error) {
	cap, err := store.CountCap(cap)
	if err != nil {
		return store.Counted{}, err
	}
	return view(ctx, s, func(c *lite.Snapshot) (store.Counted, error) { return lists.Count(c, f, cap) })
}

// Counts counts the jobs of each queue in each state.
func (s *Store) Counts(ctx context.Context) ([]store.QueueCount, error) {
	return view(ctx, s, lists.Counts)
}

// Queues tells how queues stand.
func (s *Store) Queues(ctx context.Context, names []string) ([]store.QueueState, error) {
	if err := store.CheckQueues(names); err != nil {
		return nil, err
	}
	return view(ctx, s, func(c *lite.Snapshot) ([]store.QueueState, error) { return lists.Queues(c, names) })
}

// Situations gathers why jobs are not running, in one snapshot.
func (s *Store) Situations(ctx context.Context, ids []job.ID) ([]job.Situation, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]job.Situation, error) { return lists.Situations(c, ids) })
}

// Logs returns a job's lines, the oldest first, skipping the first n.
func (s *Store) Logs(ctx context.Context, id job.ID, skip, limit int) ([]job.LogLine, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]job.LogLine, error) { return jobs.Logs(c, id, skip, limit) })
}

// Registry lists the workers.
func (s *Store) Registry(ctx context.Context) ([]store.WorkerInfo, error) {
	return view(ctx, s, workers.Registry)
}

// Audit pages through operator actions, the newest first.
func (s *Store) Audit(ctx context.Context, f store.AuditFilter, p store.AuditPage) (list store.AuditList, err error) {
	if err := p.Check(); err != nil {
		return list, err
	}
	return view(ctx, s, func(c *lite.Snapshot) (store.AuditList, error) { return settings.Entries(c, f, p) })
}

// Now is the store's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.usable(ctx); err != nil {
		return time.Time{}, err
	}
	return lite.TimeOf(s.clock.Now()), nil
}

// Listen tells of commits made by other processes. A store in memory has no
// others.
func (s *Store) Listen(ctx context.Context, hear func(store.Hint)) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.file.Memory {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.closing:
			return store.ErrClosed
		}
	}
	if s.watcher != nil {
		return s.watcher.Listen(ctx, s.namespace, &s.splits, s.closing, s.lookAlso, hear)
	}
	return hints.Listen(ctx, &s.file, s.namespace, &s.splits, s.closing, s.lookAlso, hear)
}
