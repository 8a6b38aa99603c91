package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/pawlwork/pawl/job"
)

// Counted is how many jobs there are.
type Counted struct {
	Jobs int
	More bool // it came to a bound: there may be more
}

// CountCap is the cap of a count.
func CountCap(cap int) (int, error) {
	if cap < 0 || cap > MaxCounted {
		return 0, job.Invalid("cap", cap, fmt.Sprintf("must be 0..%d, 0 for the most", MaxCounted))
	}
	if cap == 0 {
		return MaxCounted, nil
	}
	return cap, nil
}

// Counter is an optional interface of a store that counts by queue and state.
type Counter interface {
	// Counts counts the jobs of each queue in each state, where there are any: in each
	// state of MaxQueues queues, the first by name, and of each as far as QueueCap.
	// It seeks on indexes and reads no more rows than that.
	Counts(ctx context.Context) ([]QueueCount, error)
}

// QueueCount is how many jobs of a queue are in a state. More says that there may
// be more: of those that run, are blocked or suspended, that all queues together
// came to the bound.
type QueueCount struct {
	Queue string
	State job.State
	Counted
}

// SortCounts puts counts in the order of queues and states.
func SortCounts(counts []QueueCount) {
	slices.SortFunc(counts, compareCounts)
}

func compareCounts(a, b QueueCount) int {
	return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.State, b.State))
}

// Bounded is a count that stopped one behind its cap.
func Bounded(n, cap int) Counted { return Counted{Jobs: min(n, cap), More: n > cap} }

// QueueCap is how far the jobs of each of n queues are counted: as far as
// MaxCounted, five times that altogether, and of many queues twice that (P10).
func QueueCap(n int) int {
	if n > 100 {
		return max(40, 2*MaxCounted/n)
	}
	return min(MaxCounted, 5*MaxCounted/max(1, n))
}

// FirstQueues are as many of the queues that were found as one answer is about.
func FirstQueues(names []string) []string { return names[:min(len(names), MaxQueues)] }
