package store

import (
	"context"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Reader answers questions and changes nothing.
type Reader interface {
	// Get returns the jobs that exist, live or archived, in the order asked.
	Get(ctx context.Context, ids []job.ID) ([]job.Job, error)
	// List pages through jobs, newest id first.
	List(ctx context.Context, f Filter, p Page) (Listed, error)
	// Count counts the jobs a filter matches, up to cap (0 means exactly).
	Count(ctx context.Context, f Filter, cap int) (int, error)
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

// Filter chooses jobs; zero fields match everything.
type Filter struct {
	States []job.State
	Queue  string
	Kind   string
	Key    string
	Tag    string
	Wait   job.Wait // what a suspended job waits for
	// DueBefore and DueAfter tell ready from scheduled among waiting jobs.
	DueBefore, DueAfter time.Time
	// CreatedBefore and CreatedAfter bound the time of Enqueue.
	CreatedBefore, CreatedAfter time.Time
}

// StatesByTable is which states of the live jobs and of the archive a filter that
// names states reads.
func (f *Filter) StatesByTable() (live, archived []job.State) {
	for _, s := range job.States() {
		switch {
		case !slices.Contains(f.States, s):
		case s.Final():
			archived = append(archived, s)
		default:
			live = append(live, s)
		}
	}
	return live, archived
}

// Page is a place in a list.
type Page struct {
	After job.ID // the last id of the page before; zero for the first page
	Limit int    // 1..1000
}

// Listed is one page.
type Listed struct {
	Jobs []job.Job
	More bool
}
