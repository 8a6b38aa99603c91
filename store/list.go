package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Bounds of what finding jobs may cost, however many there are. A page walks an
// index in its order; where none has that order, it sorts the few jobs that an
// index names, or walks another. Both are looked at twice: once to see that they
// are few.
const (
	MaxPage    = 1_000  // jobs on a page
	MaxWalked  = 10_000 // rows of an index that one page walks
	MaxSorted  = 2_500  // jobs that are sorted for one page: the waiting ones of a queue, the running ones
	MaxCounted = 10_000 // jobs that a count comes to
	MaxVisits  = MaxWalked + 4*MaxSorted
)

// Filter chooses jobs; zero fields match everything.
type Filter struct {
	States []job.State
	Queue  string
	Kind   string
	Key    string
	Tag    string
	Wait   job.Wait     // what a suspended job waits for
	Worker job.WorkerID // who runs it; only running jobs match
	// Fingerprint is that of the last failure, see job.Failure.
	Fingerprint string
	// DueBefore and DueAfter tell ready from scheduled among waiting jobs.
	DueBefore, DueAfter time.Time
	// CreatedBefore and CreatedAfter bound the time of Enqueue.
	CreatedBefore, CreatedAfter time.Time
	// FinishedBefore and FinishedAfter bound the time of the end; only jobs that
	// have ended match.
	FinishedBefore, FinishedAfter time.Time
}

// Reads is which states of the live jobs and of the archive a filter reads. A
// single 0 stands for all of that table, in no order of states.
func (f *Filter) Reads() (live, archived []job.State) {
	if len(f.States) == 0 && f.Queue == "" && f.Wait == job.NoWait && f.Worker == 0 {
		live, archived = []job.State{0}, []job.State{0}
	} else {
		for _, s := range job.States() {
			switch {
			case len(f.States) > 0 && !slices.Contains(f.States, s):
			case f.Wait != job.NoWait && s != job.Suspended:
			case f.Worker != 0 && s != job.Running:
			case s.Final():
				archived = append(archived, s)
			default:
				live = append(live, s)
			}
		}
	}
	if !f.FinishedBefore.IsZero() || !f.FinishedAfter.IsZero() {
		live = nil
	}
	return live, archived
}

// Matches looks at what a store cannot compare in a statement: the last failure.
func (f *Filter) Matches(failures job.Failures) bool {
	if f.Fingerprint == "" {
		return true
	}
	last, ok := failures.Last()
	return ok && last.Fingerprint == f.Fingerprint
}

// Order is how a list is sorted.
type Order uint8

// The orders of a list.
const (
	ByID     Order = iota // the newest id first
	ByDue                 // the earliest due time first: waiting jobs of one queue
	ByFinish              // the last end first: dead and cancelled jobs, when they are at most MaxWalked
)

func (o Order) String() string {
	switch o {
	case ByID:
		return "by id"
	case ByDue:
		return "by due"
	case ByFinish:
		return "by finish"
	}
	return fmt.Sprintf("order(%d)", uint8(o))
}

// Bookmark is a place in a list that the next page goes on behind.
type Bookmark struct {
	ID job.ID
	At time.Time // the due time or the finish, in lists by those
}

// Bookmark is where a job is in a list.
func (o Order) Bookmark(j *job.Job) Bookmark {
	switch o {
	case ByDue:
		return Bookmark{ID: j.ID, At: j.Due}
	case ByFinish:
		return Bookmark{ID: j.ID, At: j.Finished}
	}
	return Bookmark{ID: j.ID}
}

// Compare is negative where a comes before b in a list.
func (o Order) Compare(a, b Bookmark) int {
	switch o {
	case ByDue:
		return cmp.Or(a.At.Compare(b.At), bytes.Compare(a.ID[:], b.ID[:]))
	case ByFinish:
		return cmp.Or(b.At.Compare(a.At), bytes.Compare(b.ID[:], a.ID[:]))
	}
	return bytes.Compare(b.ID[:], a.ID[:])
}

// Page is a part of a list.
type Page struct {
	After Bookmark // Listed.Next of the page before; zero for the first page
	Limit int      // 1..MaxPage
	Order Order
}

// Check refuses a page that no store can serve: every order has to have an index
// that is walked in it, or few jobs to sort.
func (p Page) Check(f Filter) error {
	if p.Limit < 1 || p.Limit > MaxPage {
		return job.Invalid("limit", p.Limit, fmt.Sprintf("must be 1..%d", MaxPage))
	}
	switch p.Order {
	case ByID:
		return nil
	case ByDue:
		if f.Queue == "" || len(f.States) != 1 || f.States[0] != job.Waiting {
			return job.Invalid("order", p.Order, "the filter must name one queue and the state waiting")
		}
		return nil
	case ByFinish:
		few := func(s job.State) bool { return s == job.Dead || s == job.Cancelled }
		if len(f.States) == 0 || slices.ContainsFunc(f.States, func(s job.State) bool { return !few(s) }) {
			return job.Invalid("order", p.Order, "the filter must name the states dead or cancelled, and no other")
		}
		return nil
	}
	return job.Invalid("order", p.Order, "must be ByID, ByDue or ByFinish")
}

// TooManyToSort is the error of a page by finish where too many jobs ended so.
func TooManyToSort() error {
	return job.Invalid("order", ByFinish, fmt.Sprintf("more than %d jobs ended so; name one queue, or list them by id", MaxWalked))
}

// Listed is one page.
type Listed struct {
	Jobs []job.Job
	More bool // there are more behind the page; where it stopped, there may be
	// Stopped says that the page came to the bound of rows that it may look at
	// before it was full. It may be empty even.
	Stopped bool
	Next    Bookmark // the next page goes on behind it; zero without More
}

// Fill makes a page of jobs that are one more than its limit, or fewer.
func (l *Listed) Fill(p Page) {
	if len(l.Jobs) > p.Limit {
		l.Jobs = slices.Clip(l.Jobs[:p.Limit])
		l.More, l.Next = true, p.Order.Bookmark(&l.Jobs[p.Limit-1])
	}
}

// Stop says that the page ended at a position where nobody knows what is behind it.
func (l *Listed) Stop(at Bookmark) { l.More, l.Stopped, l.Next = true, true, at }

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
	// Counts counts the jobs of each queue in each state, where there are any, up
	// to MaxCounted each. It seeks on indexes and reads no more rows than that.
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
	slices.SortFunc(counts, func(a, b QueueCount) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.State, b.State))
	})
}

// Bounded is a count that stopped one behind MaxCounted.
func Bounded(n int) Counted { return Counted{Jobs: min(n, MaxCounted), More: n > MaxCounted} }
