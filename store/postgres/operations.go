package postgres

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
)

var (
	_ store.Operations = (*Store)(nil)
	_ store.VerbTx     = (*within)(nil)
	_ store.VerbTx     = (*ownTx)(nil)
)

// Operate applies a verb to jobs.
func (s *Store) Operate(ctx context.Context, v store.Verb, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	return s.jobs.Operate(ctx, v, ids, op)
}

// Operate applies a verb to jobs with the transaction.
func (w *within) Operate(ctx context.Context, v store.Verb, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	return w.operateAndLeave(ctx, ids, op, jobs.VerbOf(v))
}

// Operate applies a verb to jobs with the transaction.
func (o *ownTx) Operate(ctx context.Context, v store.Verb, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	return o.operateAndTell(ctx, ids, op, jobs.VerbOf(v))
}

// Foresee says what a verb would answer, and changes nothing.
func (s *Store) Foresee(ctx context.Context, v store.Verb, ids []job.ID) ([]store.Foreseen, error) {
	if err := v.Check(); err != nil || len(ids) == 0 {
		return nil, err
	}
	return s.jobs.Foresee(ctx, v, ids)
}

// StartOperation keeps an operation.
func (s *Store) StartOperation(ctx context.Context, o store.Operation) (store.Operation, error) {
	if err := o.Check(); err != nil {
		return o, err
	}
	return s.operations.Start(ctx, o)
}

// AdvanceOperation takes the next page of an operation.
func (s *Store) AdvanceOperation(ctx context.Context, id job.ID) (store.AdvanceReply, error) {
	return s.operations.Advance(ctx, id)
}

// CancelOperation ends an open operation.
func (s *Store) CancelOperation(ctx context.Context, id job.ID, op store.Operator) (store.Operation, error) {
	return s.operations.Cancel(ctx, id, op)
}

// Operations lists operations.
func (s *Store) Operations(ctx context.Context, p store.OperationPage) ([]store.Operation, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return s.operations.List(ctx, p)
}
