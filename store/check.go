package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Check says how to look.
type Check struct {
	// Grace is how long a run may stay with a lost or absent worker; 0 means one minute.
	Grace time.Duration
	// Step is how many rows one snapshot covers; 0 means 10,000.
	Step int
	// Totals counts the jobs of each queue and state too, all of them.
	Totals bool
	// After is Next of the report before; empty begins in front.
	After string
	// Rows is behind how many rows a call stops, and says where; 0 means at the end.
	Rows int64
}

// MaxFaults is how many faults one report lists. A call that has found so many stops,
// and says where.
const MaxFaults = 1000

// CheckReport is what a check found.
type CheckReport struct {
	Live, Archived int64 // jobs looked at
	// Faults are the first MaxFaults, Found is how many were found.
	Faults []Fault
	Found  int
	// Totals are the jobs of each queue and state, where they were asked for: each job
	// once, in the state in which its stretch of ids was read.
	Totals []QueueCount
	// Next is where another call goes on; empty when everything was looked at.
	Next string
	// Repairs are the first that became of faults, Repaired is how many were mended:
	// only where that was asked for, and Faults are those that were left.
	Repairs  []Repair
	Repaired int
}

// Fault is one broken rule.
type Fault struct {
	Rule   string // short stable name, the same in every store, such as "job in two places"
	ID     job.ID // of the job; zero where the row is of none
	Detail string
	Table  string
	Key    string // of the row, for Repair
}

func (f Fault) String() string {
	text := f.Rule + ": "
	if f.ID != (job.ID{}) {
		text += "job " + f.ID.String()
		if f.Detail == "" {
			return text
		}
		text += ": "
	}
	return text + f.Detail
}

// Target is what an audit entry about the fault names.
func (f *Fault) Target() string {
	if f.ID != (job.ID{}) {
		return f.ID.String()
	}
	return f.Detail
}

// AddFault notes a fault: all of them are counted, and the first are listed.
func (r *CheckReport) AddFault(list ...Fault) {
	r.Found += len(list)
	r.Faults = append(r.Faults, list[:min(len(list), MaxFaults-len(r.Faults))]...)
}

// AddTotal counts jobs of a queue in a state.
func (r *CheckReport) AddTotal(queue string, state job.State, jobs int) {
	c := QueueCount{Queue: queue, State: state}
	i, found := slices.BinarySearchFunc(r.Totals, c, compareCounts)
	if !found {
		r.Totals = slices.Insert(r.Totals, i, c)
	}
	r.Totals[i].Jobs += jobs
}

// Join adds what a call found that went on where this one ended.
func (r *CheckReport) Join(more CheckReport) {
	r.Live, r.Archived = r.Live+more.Live, r.Archived+more.Archived
	found := r.Found + more.Found
	r.AddFault(more.Faults...)
	r.Found, r.Next = found, more.Next
	for _, c := range more.Totals {
		r.AddTotal(c.Queue, c.State, c.Jobs)
	}
}

// How many faults and repairs of each kind a printed report shows, and how many counts.
const (
	listed  = 20
	counted = 200
)

// String is the report for people: what was looked at, what is broken and what was
// done about it.
func (r CheckReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "looked at %d live and %d archived jobs", r.Live, r.Archived)
	if r.Next != "" {
		b.WriteString(", and not at all of them")
	}
	b.WriteString("\n")
	for _, c := range r.Totals[:min(len(r.Totals), counted)] {
		fmt.Fprintf(&b, "  %s: %d %s\n", c.Queue, c.Jobs, c.State)
	}
	if more := len(r.Totals) - counted; more > 0 {
		fmt.Fprintf(&b, "  and %d more counts\n", more)
	}
	for answer := RepairDone; answer <= RepairImpossible; answer++ {
		r.printRepairs(&b, answer)
	}
	switch {
	case r.Found == 0 && len(r.Repairs) == 0:
		b.WriteString("nothing is broken\n")
		return b.String()
	case r.Found == 0:
		b.WriteString("nothing is broken any more\n")
		return b.String()
	case len(r.Repairs) > 0:
		fmt.Fprintf(&b, "broken still (%d):\n", r.Found)
	default:
		fmt.Fprintf(&b, "broken (%d):\n", r.Found)
	}
	for _, f := range r.Faults[:min(len(r.Faults), listed)] {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	if more := r.Found - min(len(r.Faults), listed); more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	return b.String()
}

func (r *CheckReport) printRepairs(b *strings.Builder, answer RepairAnswer) {
	var list []Repair
	for _, done := range r.Repairs {
		if done.Answer == answer {
			list = append(list, done)
		}
	}
	if len(list) == 0 {
		return
	}
	n := len(list)
	if answer == RepairDone {
		n = r.Repaired
	}
	fmt.Fprintf(b, "%s (%d):\n", answer, n)
	for _, done := range list[:min(len(list), listed)] {
		fmt.Fprintf(b, "  %s\n", done)
	}
	if more := n - listed; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}
