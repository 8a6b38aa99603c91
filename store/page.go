package store

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Order is how a list is sorted.
type Order uint8

// The orders of a list.
const (
	ByID     Order = iota // the newest id first
	ByDue                 // the earliest due time first: waiting jobs of one queue
	ByFinish              // the last end first: dead and cancelled jobs
	ByWorker              // worker by worker: running jobs
)

func (o Order) String() string {
	switch o {
	case ByID:
		return "by id"
	case ByDue:
		return "by due"
	case ByFinish:
		return "by finish"
	case ByWorker:
		return "by worker"
	}
	return fmt.Sprintf("order(%d)", uint8(o))
}

// Bookmark is a place in a list that the next page goes on behind.
type Bookmark struct {
	ID     job.ID       `json:"id,omitzero"`
	At     time.Time    `json:"at,omitzero"`      // the due time or the finish, in lists by those
	Worker job.WorkerID `json:"worker,omitempty"` // in lists by worker
	Part   Part         `json:"part,omitempty"`   // of a list by id that is split
	Below  job.ID       `json:"below,omitzero"`   // only ids below it are in that list: it was split at this one
}

// Begins reports whether nothing is before the place: it is where a list or a part
// of it begins.
func (b Bookmark) Begins() bool { return b.ID == job.ID{} }

// Bookmark is where a job is in a list.
func (o Order) Bookmark(j *job.Job) Bookmark {
	switch o {
	case ByDue:
		return Bookmark{ID: j.ID, At: j.Due}
	case ByFinish:
		return Bookmark{ID: j.ID, At: j.Finished}
	case ByWorker:
		return Bookmark{ID: j.ID, Worker: j.Worker}
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
	case ByWorker:
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), bytes.Compare(a.ID[:], b.ID[:]))
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
	if part := p.After.Part; part != PartWhole && (p.Order != ByID || len(part.states(&f)) == 0) {
		return job.Invalid("after", part, "must be a part of a list by id that the filter reads")
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
		indexed := func(s job.State) bool { return s == job.Dead || s == job.Cancelled }
		if len(f.States) == 0 || slices.ContainsFunc(f.States, func(s job.State) bool { return !indexed(s) }) {
			return job.Invalid("order", p.Order, "the filter must name the states dead or cancelled, and no other")
		}
		return nil
	case ByWorker:
		if len(f.States) != 1 || f.States[0] != job.Running {
			return job.Invalid("order", p.Order, "the filter must name the state running")
		}
		return nil
	}
	return job.Invalid("order", p.Order, "must be ByID, ByDue, ByFinish or ByWorker")
}

// Listed is one page.
type Listed struct {
	Jobs []job.Job
	More bool // there are more behind the page; where it stopped, there may be
	// Stopped says that the page ended before it was full: at the bound of rows that
	// it may look at, or at the end of a part. It may be empty even.
	Stopped bool
	Next    Bookmark // the next page goes on behind it; zero without More
	Order   Order    // of this page: that of its part, else the one asked for
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
