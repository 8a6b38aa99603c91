package pawl

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Bounds of what an operator does to many jobs in one call.
const (
	allByDefault = 10_000
	allAtMost    = 1_000_000
	allAtOnce    = 500 // jobs of one transaction
)

// AllOption changes one call of Bulk, or of CancelAll and its like.
type AllOption struct {
	dryRun  bool
	bounded bool
	most    int
	paced   bool
	pace    int
	id      ID
}

// DryRun changes nothing, and counts what would change if it were done now: a job
// that is ready already, or whose unique key another one holds, does not count.
func DryRun() AllOption { return AllOption{dryRun: true} }

// Most bounds how many jobs are looked at, 1,000,000 at most. Without it CancelAll
// and its like look at 10,000, and more than that are ErrMore; Bulk looks at all.
func Most(n int) AllOption { return AllOption{most: n, bounded: true} }

// Pace is how many jobs a second Bulk looks at [1,000], at most 100,000. CancelAll
// and its like do not pause.
func Pace(jobs int) AllOption { return AllOption{pace: jobs, paced: true} }

// OperationID gives what Bulk begins an id of the caller's choice (UUIDv7), so that a call
// whose answer was lost can be repeated: an operation of that id is answered as it stands.
func OperationID(id ID) AllOption { return AllOption{id: id} }

func optionsOf(opts []AllOption) (AllOption, error) {
	o := AllOption{most: allByDefault, pace: store.OperationPace}
	for _, given := range opts {
		o.dryRun = o.dryRun || given.dryRun
		if given.bounded {
			o.bounded, o.most = true, given.most
		}
		if given.paced {
			o.paced, o.pace = true, given.pace
		}
		if given.id != (ID{}) {
			o.id = given.id
		}
	}
	if o.most < 1 || o.most > allAtMost {
		return o, job.Invalid("Most", o.most, fmt.Sprintf("must be 1..%d", allAtMost))
	}
	if o.pace < 1 || o.pace > store.MaxPace {
		return o, job.Invalid("Pace", o.pace, fmt.Sprintf("must be 1..%d jobs a second", store.MaxPace))
	}
	return o, nil
}

// CancelAll cancels the jobs that a filter matches, as Cancel does one, and says
// how many it ended or asked to stop. A filter without states means those that
// have not ended. Each 500 are one transaction: what was done before an error
// stays done, and is counted. It ends after 10,000 jobs with ErrMore, unless Most
// says otherwise, and with this process: for more, see Bulk.
func (e *Engine) CancelAll(ctx context.Context, f Filter, opts ...AllOption) (int, error) {
	return e.changeAll(ctx, BulkCancel(f), opts)
}

// RetryAll retries the jobs that a filter matches, as Retry does one, and says how
// many wait again. A filter without states means the dead and the cancelled. Bounds
// are those of CancelAll.
func (e *Engine) RetryAll(ctx context.Context, f Filter, opts ...AllOption) (int, error) {
	return e.changeAll(ctx, BulkRetry(f), opts)
}

// DeleteAll removes the jobs that a filter matches, as Delete does one, and says
// how many it removed or asked to cancel. The filter has to name states. Bounds are
// those of CancelAll.
func (e *Engine) DeleteAll(ctx context.Context, f Filter, opts ...AllOption) (int, error) {
	return e.changeAll(ctx, BulkDelete(f), opts)
}

// RequeueAll moves the jobs that a filter matches to another queue, as Requeue does
// one, and says how many it moved. A filter without states means those that wait or
// are suspended. Bounds are those of CancelAll.
func (e *Engine) RequeueAll(ctx context.Context, f Filter, queue string, opts ...AllOption) (int, error) {
	return e.changeAll(ctx, BulkRequeue(f, queue), opts)
}

// SetPriorityAll gives the jobs that a filter matches another priority, as
// SetPriority does one, and says how many it changed. A filter without states means
// those that wait or are suspended. Bounds are those of CancelAll.
func (e *Engine) SetPriorityAll(ctx context.Context, f Filter, priority int, opts ...AllOption) (int, error) {
	return e.changeAll(ctx, BulkPriority(f, priority), opts)
}

// changeAll pages through what matches and changes each page.
func (e *Engine) changeAll(ctx context.Context, b Bulk, opts []AllOption) (int, error) {
	o, err := optionsOf(opts)
	if err != nil {
		return 0, err
	}
	if err := b.check(); err != nil {
		return 0, err
	}
	if err := e.usable(ctx); err != nil {
		return 0, err
	}
	if o.dryRun {
		counts, err := e.foresee(ctx, b, o)
		return int(counts.Changed + counts.Asked), err
	}
	changed := 0
	err = e.eachPage(ctx, b.filter, o, func(ids []ID) error {
		changes, err := e.operate(ctx, b.verb, ids)
		for _, c := range changes {
			if c == Changed || c == Asked {
				changed++
			}
		}
		return err
	})
	return changed, err
}

// foresee counts what would change, page by page, and changes nothing.
func (e *Engine) foresee(ctx context.Context, b Bulk, o AllOption) (counts OperationCounts, err error) {
	ops, err := e.operations()
	if err != nil {
		return counts, err
	}
	keys := map[string]bool{} // that those before would have taken
	err = e.eachPage(ctx, b.filter, o, func(ids []ID) error {
		answers, err := ops.Foresee(ctx, b.verb, ids)
		for _, a := range answers {
			if a.Key != "" && keys[a.Key] {
				a.Change = Duplicate
			} else if a.Key != "" {
				keys[a.Key] = true
			}
			counts.Add(a.Change)
		}
		return err
	})
	return counts, err
}

// eachPage goes through the ids of what matches. What a change moves keeps its id, so
// that no page misses anything and none sees it twice.
func (e *Engine) eachPage(ctx context.Context, f Filter, o AllOption, do func([]ID) error) error {
	page := Page{}
	for most := o.most; most > 0; {
		page.Limit = min(most, allAtOnce)
		listed, err := e.store.List(ctx, f, page)
		if err != nil {
			return err
		}
		ids := make([]ID, len(listed.Jobs))
		for i := range listed.Jobs {
			ids[i] = listed.Jobs[i].ID
		}
		if len(ids) > 0 {
			if err := do(ids); err != nil {
				return err
			}
		}
		if !listed.More {
			return nil
		}
		most -= len(ids)
		page.After = listed.Next
	}
	if o.bounded {
		return nil
	}
	return fmt.Errorf("%w than the first %d: say Most(n), or use Bulk", ErrMore, o.most)
}
