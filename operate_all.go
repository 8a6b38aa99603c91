package pawl

import (
	"context"
	"errors"
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

// AllOption changes one call of CancelAll, RetryAll or DeleteAll.
type AllOption struct {
	dryRun  bool
	bounded bool
	most    int
}

// DryRun changes nothing, and counts the jobs that match.
func DryRun() AllOption { return AllOption{dryRun: true} }

// Most bounds how many jobs are looked at, 1,000,000 at most. Without it they are
// 10,000, and more than that are ErrMore.
func Most(n int) AllOption { return AllOption{most: n, bounded: true} }

// CancelAll cancels the jobs that a filter matches, as Cancel does one, and says
// how many it ended or asked to stop. A filter without states means those that
// have not ended. Each 500 are one transaction: what was done before an error
// stays done, and is counted. It ends after 10,000 jobs with ErrMore, unless Most
// says otherwise.
func (e *Engine) CancelAll(ctx context.Context, f Filter, opts ...AllOption) (int, error) {
	if len(f.States) == 0 {
		f.States = []State{StateBlocked, StateWaiting, StateRunning, StateSuspended}
	}
	return e.changeAll(ctx, f, opts, e.store.Cancel, func(id ID, c Change) {
		if c == Asked {
			e.cancelHere(id)
		}
	})
}

// RetryAll retries the jobs that a filter matches, as Retry does one, and says how
// many wait again. A filter without states means the dead and the cancelled. Bounds
// are those of CancelAll.
func (e *Engine) RetryAll(ctx context.Context, f Filter, opts ...AllOption) (int, error) {
	if len(f.States) == 0 {
		f.States = []State{StateDead, StateCancelled}
	}
	n, err := e.changeAll(ctx, f, opts, e.store.Retry, nil)
	if n > 0 {
		e.hub.Ready(store.Hint{Subject: store.SubjectQueue})
	}
	return n, err
}

// DeleteAll removes the jobs that a filter matches, as Delete does one, and says
// how many it removed or asked to cancel. The filter has to name states. Bounds are
// those of CancelAll.
func (e *Engine) DeleteAll(ctx context.Context, f Filter, opts ...AllOption) (int, error) {
	if len(f.States) == 0 {
		return 0, job.Invalid("Filter.States", "none", "must be named, so that nothing is deleted by mistake")
	}
	return e.changeAll(ctx, f, opts, e.store.Delete, func(id ID, c Change) {
		if c == Asked {
			e.cancelHere(id)
		}
	})
}

// changeAll pages through what matches and changes each page. What a change moves
// keeps its id, so that no page misses anything and none sees it twice.
func (e *Engine) changeAll(ctx context.Context, f Filter, opts []AllOption, change func(context.Context, []ID, store.Operator) ([]Change, error), each func(ID, Change)) (int, error) {
	dryRun, bounded, most := false, false, allByDefault
	for _, o := range opts {
		dryRun = dryRun || o.dryRun
		if o.bounded {
			bounded, most = true, o.most
		}
	}
	if most < 1 || most > allAtMost {
		return 0, job.Invalid("Most", most, fmt.Sprintf("must be 1..%d", allAtMost))
	}
	if err := errors.Join(f.Check(), e.usable(ctx)); err != nil {
		return 0, err
	}
	changed := 0
	page := Page{}
	for most > 0 {
		page.Limit = min(most, allAtOnce)
		listed, err := e.store.List(ctx, f, page)
		if err != nil {
			return changed, err
		}
		ids := make([]ID, len(listed.Jobs))
		for i := range listed.Jobs {
			ids[i] = listed.Jobs[i].ID
		}
		switch {
		case dryRun:
			changed += len(ids)
		case len(ids) > 0:
			changes, err := change(ctx, ids, operatorOf(ctx))
			if err != nil {
				return changed, err
			}
			for i, c := range changes {
				if c == Changed || c == Asked {
					changed++
				}
				if each != nil {
					each(ids[i], c)
				}
			}
		}
		if !listed.More {
			return changed, nil
		}
		most -= len(ids)
		page.After = listed.Next
	}
	if bounded {
		return changed, nil
	}
	return changed, fmt.Errorf("%w than the first %d: say Most(n)", ErrMore, allByDefault)
}
