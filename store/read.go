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
	// Situation gathers why a job is not running; job.Explain says it.
	Situation(ctx context.Context, id job.ID) (job.Situation, error)
	// Logs returns a job's lines, the oldest first, skipping the first n.
	Logs(ctx context.Context, id job.ID, skip, limit int) ([]job.LogLine, error)
	// Registry lists the workers.
	Registry(ctx context.Context) ([]WorkerInfo, error)
	// Audit lists operator actions, the newest first.
	Audit(ctx context.Context, limit int) ([]AuditEntry, error)
	// Now is the store's clock.
	Now(ctx context.Context) (time.Time, error)
}

// AuditEntry is one operator action.
type AuditEntry struct {
	Time   time.Time
	By     string
	Action string // such as "retry" or "pause"
	Target string // job id or queue
	Note   string
}
