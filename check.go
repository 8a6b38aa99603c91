package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/store"
)

// CheckOptions says what a check does. Zero looks at everything and changes nothing.
type CheckOptions struct {
	// Repair mends what can be mended, while everything goes on: see Engine.Check.
	Repair bool
	// Totals counts the jobs of each queue and state, all of them.
	Totals bool
	// Grace is how long a run may stay with a lost worker [twice LostAfter].
	Grace time.Duration
	// Step is how many rows one snapshot covers [10,000].
	Step int
	// Rows is behind how many rows a call ends, and says where in Next of its report
	// [at the end]. After is that place.
	Rows  int64
	After string
}

// repairPasses is how often everything is looked at where repairs were made: a repair
// may show what was hidden behind the fault, or one stretch had more faults than one
// report lists.
const repairPasses = 20

// Check holds the store against its rules (P6), in short snapshots that hold nobody up.
//
// With Repair it mends what it finds, each row in a short transaction of its own: the
// row is locked and looked at again, mended, and written into the audit log under the
// name that As gave. Accepted work is never lost by it: a job of which one cannot tell
// how it stands waits, and runs again. What cannot be mended is left, and said to be.
// Where an error ends it, the report is of what was done until then.
func (e *Engine) Check(ctx context.Context, o CheckOptions) (CheckReport, error) {
	if err := e.usable(ctx); err != nil {
		return CheckReport{}, err
	}
	c := &checking{e: e, options: store.Check{
		Grace: cmp.Or(o.Grace, 2*e.cfg.LostAfter), Step: o.Step, Totals: o.Totals, Rows: o.Rows, After: o.After,
	}}
	if o.Repair {
		var ok bool
		if c.repairer, ok = e.store.(store.Repairer); !ok {
			return CheckReport{}, fmt.Errorf("repair: %w", errors.ErrUnsupported)
		}
	}
	report, err := c.pass(ctx)
	for n := 1; err == nil && c.mended > 0 && o.Rows == 0 && n < repairPasses; n++ {
		report, err = c.pass(ctx)
	}
	report.Repairs, report.Repaired = append(c.done, c.others...), c.repaired
	if c.repaired > 0 {
		e.hub.Ready(store.Hint{Subject: store.SubjectQueue}) // what was mended may wait
	}
	return report, err
}

// Rules lists what Check holds the store against, and what Repair does about each.
func (e *Engine) Rules() []Rule {
	if r, ok := e.store.(store.Repairer); ok {
		return r.Rules()
	}
	return nil
}

// checking is one call of Check.
type checking struct {
	e        *Engine
	options  store.Check
	repairer store.Repairer // nil: it only looks
	done     []Repair       // the first that were mended
	repaired int            // how many were, in all passes
	mended   int            // and in the last one
	others   []Repair       // of the last pass
}

// pass looks at everything once, or at as many rows as it may. Its report has the
// faults that were left.
func (c *checking) pass(ctx context.Context) (report CheckReport, err error) {
	c.mended, c.others = 0, nil
	for look := c.options; ; look.After = report.Next {
		page, err := c.e.store.Check(ctx, look)
		if err == nil {
			err = c.repair(ctx, &page)
		}
		report.Join(page)
		if err != nil || report.Next == "" || c.options.Rows > 0 {
			return report, err
		}
	}
}

// repair mends the faults of a page, and takes those that are none any more off it.
func (c *checking) repair(ctx context.Context, page *CheckReport) error {
	if c.repairer == nil || len(page.Faults) == 0 {
		return nil
	}
	done, err := c.repairer.Repair(ctx, page.Faults, store.RepairRequest{By: operatorOf(ctx), Grace: c.options.Grace})
	left := slices.Clone(page.Faults[len(done):])
	for _, r := range done {
		switch r.Answer {
		case store.RepairDone:
			c.mended, c.repaired = c.mended+1, c.repaired+1
			c.done = appendFew(c.done, r)
		case store.RepairBusy, store.RepairImpossible:
			left = append(left, r.Fault)
			fallthrough
		default:
			c.others = appendFew(c.others, r)
		}
	}
	page.Found -= len(page.Faults) - len(left)
	page.Faults = left
	return err
}

// appendFew appends to a list that a report may hold.
func appendFew(list []Repair, r Repair) []Repair {
	if len(list) >= store.MaxFaults {
		return list
	}
	return append(list, r)
}
