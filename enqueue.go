package pawl

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
)

// Enqueuer accepts jobs: an Engine does so in a transaction of its own, a Tx in
// the caller's.
type Enqueuer interface {
	Enqueue(ctx context.Context, args Args, opts ...EnqueueOption) (Receipt, error)
	EnqueueMany(ctx context.Context, items ...Item) ([]Receipt, error)
}

var (
	_ Enqueuer = (*Engine)(nil)
	_ Enqueuer = (*Tx)(nil)
)

// Item is one job of EnqueueMany: arguments and options. NewItem makes it.
type Item struct {
	args Args
	opts []EnqueueOption
}

// NewItem makes one job to hand to EnqueueMany.
func NewItem(args Args, opts ...EnqueueOption) Item { return Item{args, opts} }

// Enqueue hands in one job. When it returns nil the job is on disk and will run
// until an outcome commits (P1, P2). The receipt carries the job's id also with
// ErrOutcomeUnknown: then send again with WithID.
func (e *Engine) Enqueue(ctx context.Context, args Args, opts ...EnqueueOption) (Receipt, error) {
	rs, err := e.EnqueueMany(ctx, Item{args, opts})
	if len(rs) == 0 {
		return Receipt{}, err
	}
	return rs[0], err
}

// EnqueueMany hands in jobs, all or none, in order. There is a receipt for each.
func (e *Engine) EnqueueMany(ctx context.Context, items ...Item) ([]Receipt, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	drafts, end, err := e.drafts(ctx, items)
	if err != nil {
		return nil, err
	}
	receipts, err := e.accept(ctx, drafts)
	end(err)
	if errors.Is(err, ErrOutcomeUnknown) {
		receipts = make([]Receipt, len(drafts))
		for i := range drafts {
			receipts[i].ID = drafts[i].ID
		}
	}
	return receipts, err
}

// accept hands drafts to the store. Those for which a handler of this process is free
// begin in the same commit (J34); claims are told of the others.
func (e *Engine) accept(ctx context.Context, drafts []job.Draft) ([]Receipt, error) {
	e.mu.Lock()
	r := e.running
	if e.run == nil {
		r = nil
	}
	e.mu.Unlock()
	if r != nil {
		r.HandOver(drafts)
	}
	returned := false
	defer func() {
		if !returned { // it panicked: nobody knows
			job.SettleHandOvers(drafts, job.HandedOver{Unknown: true})
		}
	}()
	receipts, err := e.store.Enqueue(ctx, drafts)
	returned = true
	if errors.Is(err, ErrOutcomeUnknown) {
		e.hub.Ready(wake.Hints(drafts)...) // they may be there
		return nil, err
	}
	job.SettleHandOvers(drafts, job.HandedOver{}) // what the store did not
	switch {
	case err != nil:
		return nil, err
	case r != nil:
		r.Accepted(drafts)
	default:
		e.hub.Accepted(wake.Hints(drafts)...)
	}
	return receipts, nil
}

// drafts completes and checks everything that is handed in; its errors name the
// item when there are several. Without one, end has to be called with what becomes
// of the drafts.
func (e *Engine) drafts(ctx context.Context, items []Item) (list []job.Draft, end func(error), err error) {
	if len(items) > job.MaxDrafts {
		return nil, nil, job.Invalid("items", len(items), fmt.Sprintf("must be at most %d", job.MaxDrafts))
	}
	if !e.followed.running.Load() {
		e.followed.mirror.Refresh()
	}
	drafts := make([]job.Draft, len(items))
	var errs []error
	var d draftBuilder // one for all: options get its address
	deadlines := false
	for i, item := range items {
		err := e.draft(&d, item)
		drafts[i] = d.Draft
		deadlines = deadlines || !d.Deadline.IsZero()
		if err != nil {
			if len(items) > 1 {
				err = fmt.Errorf("item %d: %w", i, err)
			}
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	if deadlines {
		if err := e.checkDeadlines(ctx, drafts); err != nil {
			return nil, nil, err
		}
	}
	if end, err = e.hooked(ctx, drafts); err != nil {
		return nil, nil, err
	}
	return drafts, end, nil
}

// hooked shows drafts to the hooks, and checks what these made of them.
func (e *Engine) hooked(ctx context.Context, drafts []job.Draft) (end func(error), err error) {
	end = func(error) {}
	hooks := &e.cfg.Hooks
	if hooks.Enqueue == nil && hooks.AroundEnqueue == nil {
		return end, nil
	}
	if hooks.Enqueue != nil {
		if err := hooks.Enqueue(ctx, drafts); err != nil {
			return nil, err
		}
	}
	if hooks.AroundEnqueue != nil {
		if ends := hooks.AroundEnqueue(ctx, drafts); ends != nil {
			end = ends
		}
	}
	var errs []error
	for i := range drafts {
		errs = append(errs, drafts[i].Check(job.Bounds{Payload: e.cfg.Bounds.Payload}))
	}
	if err := errors.Join(errs...); err != nil {
		end(err)
		return nil, err
	}
	return end, nil
}

// draft makes one of an item.
func (e *Engine) draft(d *draftBuilder, item Item) error {
	kind, err := kindOf(item.args)
	if err != nil {
		return err
	}
	if err := e.checkArgs(item.args); err != nil {
		return err
	}
	*d = draftBuilder{Draft: job.Draft{Kind: kind, Version: versionOf(item.args), Priority: job.DefaultPriority}}
	if raw, ok := item.args.(rawArgs); ok {
		d.Args = raw.payload
	} else if d.Args, err = e.cfg.Codec.Marshal(item.args); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	if def, ok := item.args.(ArgsWithDefaults); ok {
		for _, o := range def.Defaults() {
			if o == nil {
				return job.Invalid("option in the defaults of "+kind, "nil", "must not be nil")
			}
			o.enqueue(d)
		}
	}
	for _, o := range item.opts {
		if o == nil {
			return job.Invalid("option", "nil", "must not be nil")
		}
		o.enqueue(d)
	}
	if d.Queue == "" {
		d.Queue = job.RouteKind(e.cfg.Routes, kind)
	}
	if !d.attempts {
		d.Attempts = e.followed.rules.Load().attempts(d.Queue)
	}
	d.Gate = e.followed.limits.Load().gates.Gate(d.Queue, d.Kind, d.Key)
	if d.ID == (job.ID{}) && !d.Resend {
		d.ID = job.NewID()
	}
	if d.unique != nil {
		d.hashUnique()
	}
	err = d.Check(job.Bounds{Payload: e.cfg.Bounds.Payload})
	if len(d.errs) > 0 {
		return errors.Join(append(d.errs, err)...)
	}
	return err
}

// checkDeadlines refuses deadlines that have passed, or will have when the job is
// due: it would never run. The store's clock decides, and is asked only when
// there is a deadline.
func (e *Engine) checkDeadlines(ctx context.Context, drafts []job.Draft) error {
	now, err := e.store.Now(ctx)
	if err != nil {
		return err
	}
	for i := range drafts {
		d := &drafts[i]
		switch before := "must be before the deadline, " + d.Deadline.UTC().String(); {
		case d.Deadline.IsZero():
		case !d.Deadline.After(now):
			return job.Invalid("deadline", d.Deadline, "must be after the store's now, "+now.UTC().String())
		case !d.At.IsZero() && !d.At.Before(d.Deadline):
			return job.Invalid("at", d.At, before)
		case d.At.IsZero() && d.In >= d.Deadline.Sub(now): // the sum may overflow
			return job.Invalid("in", d.In, before)
		}
	}
	return nil
}
