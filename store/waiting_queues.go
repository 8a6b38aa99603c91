package store

import "context"

// QueueLister is a store that can say where jobs wait.
type QueueLister interface {
	// WaitingQueues lists queues with waiting jobs, due or not, in the order of their
	// names: those behind one (empty: from the first on), limit at most.
	WaitingQueues(ctx context.Context, after string, limit int) ([]string, error)
}
