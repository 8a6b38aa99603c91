package store

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Reader answers questions and changes nothing.
type Reader interface {
	// Get returns the jobs that exist, live or archived, in the order asked.
	Get(ctx context.Context, ids []job.ID) ([]job.Job, error)
	// List pages through jobs. It looks at MaxVisits rows at most.
	List(ctx context.Context, f Filter, p Page) (Listed, error)
	// Count counts the jobs a filter matches, up to cap (0 means MaxCounted). It
	// looks at MaxVisits rows at most.
	Count(ctx context.Context, f Filter, cap int) (Counted, error)
	// Situations gathers why jobs are not running, of those that exist and in the
	// order asked; job.Explain says it. What they share is read once. Jobs ahead are
	// counted as far as AheadCap.
	Situations(ctx context.Context, ids []job.ID) ([]job.Situation, error)
	// Logs returns a job's lines, the oldest first, skipping the first n.
	Logs(ctx context.Context, id job.ID, skip, limit int) ([]job.LogLine, error)
	// Registry lists the workers.
	Registry(ctx context.Context) ([]WorkerInfo, error)
	// Audit pages through operator actions, the newest first.
	Audit(ctx context.Context, f AuditFilter, p AuditPage) (AuditList, error)
	// Now is the store's clock.
	Now(ctx context.Context) (time.Time, error)
}
