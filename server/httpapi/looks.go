package httpapi

import (
	"context"
	"net/http"
	"time"
)

// Bounds of questions that go through many rows.
const (
	looksAtOnce = 3               // SQLite reads with four connections, and the engine needs one for its own work
	lookWait    = 5 * time.Second // for a place
)

// wide are the operations that may go through thousands of rows, each by its own bounds.
// They wait for each other, so that many who ask hold up nobody but themselves: jobs are
// enqueued, claimed, read and changed as before.
var wide = map[string]bool{
	"list-jobs": true, "count-jobs": true, "get-job-why": true, "explain-jobs": true, "list-queues": true, "get-queue": true, "list-counts": true,
	"list-series": true, "list-failures": true, "list-worker-loads": true, "list-audit": true, "check-store": true,
	"list-events": true, "list-cursors": true, "list-groups": true, "get-group": true, "list-group-parked": true,
}

// looks are the places of those that go on.
type looks chan struct{}

// begin waits for a place, if the operation needs one. The end gives it back.
func (l looks) begin(ctx context.Context, operation string) (end func(), err error) {
	if !wide[operation] {
		return func() {}, nil
	}
	late := time.NewTimer(lookWait)
	defer late.Stop()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, newProblem(http.StatusServiceUnavailable, "busy", "too many ask for lists and counts: try again later")
	}
}
