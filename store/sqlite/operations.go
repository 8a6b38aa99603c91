package sqlite

import (
	"context"
	"errors"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/operations"
)

var (
	_ store.Operations = (*Store)(nil)
	_ store.VerbTx     = within{}
)

// Operate applies a verb to jobs.
func (s *Store) Operate(ctx context.Context, v store.Verb, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if err := v.Check(); err != nil || len(ids) == 0 {
		return nil, err
	}
	if v.Name == store.VerbDelete {
		return s.Delete(ctx, ids, op)
	}
	return ask(ctx, s, len(ids), func(t *jobs.Transition) ([]store.Change, error) { return t.Operate(v, ids, op, nil) })
}

// Operate applies a verb to jobs with the transaction.
func (w within) Operate(ctx context.Context, v store.Verb, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	return w.operate(ctx, func(t *jobs.Transition) ([]store.Change, error) { return t.Operate(v, ids, op, nil) })
}

// Foresee says what a verb would answer, in one snapshot.
func (s *Store) Foresee(ctx context.Context, v store.Verb, ids []job.ID) ([]store.Foreseen, error) {
	if err := v.Check(); err != nil || len(ids) == 0 {
		return nil, err
	}
	return view(ctx, s, func(c *lite.Snapshot) ([]store.Foreseen, error) { return jobs.Foresee(c, v, ids) })
}

// StartOperation keeps an operation.
func (s *Store) StartOperation(ctx context.Context, o store.Operation) (store.Operation, error) {
	if err := o.Check(); err != nil {
		return o, err
	}
	return ask(ctx, s, 1, func(t *jobs.Transition) (store.Operation, error) { return operations.Start(&t.Session, o) })
}

// AdvanceOperation takes the next page of an operation: it is listed beside the
// writer, and done in one transaction, unless somebody else did it in between.
func (s *Store) AdvanceOperation(ctx context.Context, id job.ID) (store.AdvanceReply, error) {
	page, err := view(ctx, s, func(c *lite.Snapshot) (operations.Page, error) { return operations.Next(c, id) })
	if err != nil || !page.Due {
		return store.AdvanceReply{Operation: page.Of, Now: lite.TimeOf(page.Now)}, err
	}
	reply, err := s.advance(ctx, &page)
	if err == nil || ctx.Err() != nil || !store.ItsFault(err) {
		return reply, err
	}
	noted, failed := ask(ctx, s, 1, func(t *jobs.Transition) (store.AdvanceReply, error) { return operations.Fail(t, &page, err) })
	return noted, errors.Join(err, failed)
}

func (s *Store) advance(ctx context.Context, page *operations.Page) (store.AdvanceReply, error) {
	if page.Of.Verb.Name == store.VerbDelete {
		if err := s.shorten(ctx, page.IDs); err != nil {
			return store.AdvanceReply{}, err
		}
	}
	return ask(ctx, s, len(page.IDs)+1, func(t *jobs.Transition) (store.AdvanceReply, error) { return operations.Advance(t, page) })
}

// CancelOperation ends an open operation.
func (s *Store) CancelOperation(ctx context.Context, id job.ID, op store.Operator) (store.Operation, error) {
	return ask(ctx, s, 1, func(t *jobs.Transition) (store.Operation, error) { return operations.Cancel(&t.Session, id, op) })
}

// Operations lists operations.
func (s *Store) Operations(ctx context.Context, p store.OperationPage) ([]store.Operation, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return view(ctx, s, func(c *lite.Snapshot) ([]store.Operation, error) { return operations.List(c, p) })
}
