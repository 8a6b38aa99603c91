package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Bulk is what an operator wants done to the jobs that a filter matches.
type Bulk struct {
	verb   store.Verb
	filter Filter
}

// BulkRetry makes jobs wait again, as Retry does one. A filter without states means
// the dead and the cancelled.
func BulkRetry(f Filter) Bulk { return bulk(store.Verb{Name: store.VerbRetry}, f) }

// BulkCancel cancels jobs, as Cancel does one. A filter without states means those
// that have not ended.
func BulkCancel(f Filter) Bulk { return bulk(store.Verb{Name: store.VerbCancel}, f) }

// BulkDelete removes jobs, as Delete does one. The filter has to name states.
func BulkDelete(f Filter) Bulk { return bulk(store.Verb{Name: store.VerbDelete}, f) }

// BulkRequeue moves jobs to another queue, as Requeue does one. A filter without
// states means those that wait or are suspended.
func BulkRequeue(f Filter, queue string) Bulk {
	return bulk(store.Verb{Name: store.VerbRequeue, Queue: queue}, f)
}

// BulkPriority gives jobs another priority, as SetPriority does one. A filter without
// states means those that wait or are suspended.
func BulkPriority(f Filter, priority int) Bulk {
	return bulk(store.Verb{Name: store.VerbPriority, Priority: priority}, f)
}

func bulk(v store.Verb, f Filter) Bulk {
	if len(f.States) == 0 {
		switch v.Name {
		case store.VerbRetry:
			f.States = []State{StateDead, StateCancelled}
		case store.VerbCancel:
			f.States = []State{StateBlocked, StateWaiting, StateRunning, StateSuspended}
		case store.VerbRequeue, store.VerbPriority:
			f.States = []State{StateBlocked, StateWaiting, StateSuspended}
		}
	}
	return Bulk{v, f}
}

// check refuses what would change nothing, or too much by mistake.
func (b *Bulk) check() error {
	errs := []error{b.verb.Check(), b.filter.Check()}
	if len(b.filter.States) == 0 {
		errs = append(errs, job.Invalid("Filter.States", "none", "must be named, so that nothing is deleted by mistake"))
	} else if b.verb.Known() && b.filter.Check() == nil && !slices.ContainsFunc(b.filter.States, b.verb.Touches) {
		var can []State
		for _, s := range job.States() {
			if b.verb.Touches(s) {
				can = append(can, s)
			}
		}
		errs = append(errs, job.Invalid("Filter.States", b.filter.States, fmt.Sprintf("must have one of %v: %s does nothing to others", can, b.verb.Name)))
	}
	return errors.Join(errs...)
}

// Bulk begins to do something to many jobs, however many, and returns at once. The
// operation is kept in the store and goes on when this process dies: processes that
// run advance it, [1,000] jobs a second in the whole cluster (Pace), and
// WaitOperation does. No job of it is done twice. Jobs that are created later, or
// are changed by others before it comes to them, are left alone; running ones are
// touched by BulkCancel and BulkDelete only, which ask them to stop. Its start, what it
// did to each job and its end are in the audit log.
//
// With DryRun it only counts what it would do: nothing is kept, and the operation
// that is returned has no id.
func (e *Engine) Bulk(ctx context.Context, b Bulk, opts ...AllOption) (Operation, error) {
	o, err := optionsOf(opts)
	if err != nil {
		return Operation{}, err
	}
	if err := errors.Join(b.check(), e.usable(ctx)); err != nil {
		return Operation{}, err
	}
	ops, err := e.operations()
	if err != nil {
		return Operation{}, err
	}
	by := operatorOf(ctx)
	op := Operation{ID: job.NewID(), Verb: b.verb, Filter: b.filter, Pace: o.pace, By: by.Name, Note: by.Note}
	if o.id != (ID{}) {
		op.ID = o.id
	}
	if o.bounded {
		op.Most = int64(o.most)
	}
	if o.dryRun {
		if !o.bounded {
			o.most = allAtMost
		}
		op.ID = ID{}
		op.Counts, err = e.foresee(ctx, b, o)
		return op, err
	}
	if op, err = ops.StartOperation(ctx, op); err != nil {
		return op, err
	}
	if r, k := e.runner(), e.keeping.Load(); r != nil && k != nil {
		k.ForgetLook()
		r.Wake(keeper.Tick(keeper.OperationsRound))
	}
	return op, nil
}

// operations is the store as one that keeps operations.
func (e *Engine) operations() (store.Operations, error) {
	if ops, ok := e.store.(store.Operations); ok {
		return ops, nil
	}
	return nil, fmt.Errorf("operations over many jobs: %w", errors.ErrUnsupported)
}

// Operations lists what Bulk began, the newest first, 100 at most: those that are
// open and those that ended in the last 30 days. Before names the operation behind
// which the list goes on.
func (e *Engine) Operations(ctx context.Context, before ...ID) ([]Operation, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	ops, err := e.operations()
	if err != nil {
		return nil, err
	}
	p := store.OperationPage{Limit: store.MaxOperations}
	if len(before) > 0 {
		p.Before = before[0]
	}
	return ops.Operations(ctx, p)
}

// Operation reads one: how it stands, and how far it is.
func (e *Engine) Operation(ctx context.Context, id ID) (Operation, error) {
	if err := e.usable(ctx); err != nil {
		return Operation{}, err
	}
	ops, err := e.operations()
	if err != nil {
		return Operation{}, err
	}
	list, err := ops.Operations(ctx, store.OperationPage{ID: id, Limit: 1})
	switch {
	case err != nil:
		return Operation{}, err
	case len(list) == 0 || list[0].ID != id: // no id means any
		return Operation{}, job.NotFound("operation", id)
	}
	return list[0], nil
}

// CancelOperation ends an operation. What it has done stays done.
func (e *Engine) CancelOperation(ctx context.Context, id ID) (Operation, error) {
	if err := e.usable(ctx); err != nil {
		return Operation{}, err
	}
	ops, err := e.operations()
	if err != nil {
		return Operation{}, err
	}
	return ops.CancelOperation(ctx, id, operatorOf(ctx))
}

// How long WaitOperation pauses between two pages.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = time.Second
)

// WaitOperation returns an operation once it has ended. It advances it, too, so that
// a program that does not run is enough. While the store is unavailable it goes on
// trying; what ends it is the context, or Close.
func (e *Engine) WaitOperation(ctx context.Context, id ID) (Operation, error) {
	for {
		if err := e.usable(ctx); err != nil {
			return Operation{}, err
		}
		ops, err := e.operations()
		if err != nil {
			return Operation{}, err
		}
		r, err := ops.AdvanceOperation(ctx, id)
		pause := longestPause
		switch {
		case err == nil:
			e.operated(r.Operation.Verb, r.Asked, r.Did)
			if r.Operation.State != OperationOpen {
				return r.Operation, nil
			}
			if r.Operation.Verb.Known() {
				pause = r.Operation.Next.Sub(r.Now)
			}
		case store.ItsFault(err) && ctx.Err() == nil && r.Operation.State == OperationOpen: // it is noted, and put off
			pause = r.Operation.Next.Sub(r.Now)
		case store.ItsFault(err) && ctx.Err() == nil && r.Operation.State == OperationFailed:
			return r.Operation, nil
		case !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrBusy):
			return r.Operation, err
		}
		timer := time.NewTimer(min(max(pause, shortestPause), longestPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return r.Operation, fmt.Errorf("wait for operation %s: %w", id, context.Cause(ctx))
		}
	}
}

// operated tells this process what was made ready, or asked to stop.
func (e *Engine) operated(v store.Verb, asked []ID, changed bool) {
	for _, id := range asked {
		e.cancelHere(id)
	}
	if changed && v.Name != store.VerbCancel && v.Name != store.VerbDelete {
		e.hub.Ready(store.Hint{Subject: store.SubjectQueue})
	}
}
