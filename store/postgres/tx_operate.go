package postgres

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

var (
	_ store.OperatingTx = (*within)(nil)
	_ store.OperatingTx = (*ownTx)(nil)
)

// Cancel ends jobs with the transaction, or asks running ones to stop.
func (w *within) Cancel(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return w.operateAndLeave(ctx, ids, op, jobs.Cancel)
}

// Retry makes jobs ready with the transaction.
func (w *within) Retry(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return w.operateAndLeave(ctx, ids, op, jobs.Retry)
}

// Delete removes jobs with the transaction, or asks running ones to cancel.
func (w *within) Delete(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return w.operateAndLeave(ctx, ids, op, jobs.Delete)
}

// operateAndLeave carries hints for claims in the transaction, as Enqueue does.
// Processes are told soon to look for runs that were asked to stop; those of a
// later commit are found with a heartbeat.
func (w *within) operateAndLeave(ctx context.Context, ids []job.ID, op store.Operator, verb jobs.Verb) ([]store.Change, error) {
	changes, told, asked, err := w.operate(ctx, ids, op, verb)
	if err != nil {
		return changes, err
	}
	if asked {
		w.s.hints.Notifier.Left(store.Hint{Subject: store.SubjectJob})
	}
	if len(told) == 0 {
		return changes, nil
	}
	if err := w.enter(ctx); err != nil {
		return nil, err
	}
	defer w.s.pg.Leave()
	return changes, pg.Explain(verb.Action, w.s.hints.Leave(ctx, w.in, told))
}

func (w *within) operate(
	ctx context.Context, ids []job.ID, op store.Operator, verb jobs.Verb,
) (changes []store.Change, told hints.Set, asked bool, err error) {
	if err := w.enter(ctx); err != nil {
		return nil, nil, false, err
	}
	defer w.s.pg.Leave()
	changes, told, asked, err = w.s.jobs.OperateIn(ctx, w.in, ids, op, verb)
	return changes, told, asked, pg.Explain(verb.Action, w.foreign(err))
}

// Cancel ends jobs with the transaction, or asks running ones to stop.
func (o *ownTx) Cancel(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return o.operateAndTell(ctx, ids, op, jobs.Cancel)
}

// Retry makes jobs ready with the transaction.
func (o *ownTx) Retry(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return o.operateAndTell(ctx, ids, op, jobs.Retry)
}

// Delete removes jobs with the transaction, or asks running ones to cancel.
func (o *ownTx) Delete(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return o.operateAndTell(ctx, ids, op, jobs.Delete)
}

// operateAndTell keeps what is told after the commit, which can be seen.
func (o *ownTx) operateAndTell(ctx context.Context, ids []job.ID, op store.Operator, verb jobs.Verb) ([]store.Change, error) {
	changes, told, asked, err := o.operate(ctx, ids, op, verb)
	o.hints.Join(told)
	o.asked = o.asked || asked
	return changes, err
}

// tell lets claims and asked runs know of what was committed, or may have been: a
// hint too many is harmless.
func (o *ownTx) tell() {
	o.s.hints.Tell(o.hints)
	if o.asked {
		o.s.hints.Notifier.Cancel()
	}
	if o.intended {
		o.s.intents.Committed()
	}
	o.s.log.Told(o.published)
	if o.foreignIntents {
		o.s.hints.Notifier.Say(store.Hint{Subject: store.SubjectIntent})
	}
}
