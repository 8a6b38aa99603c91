package pawl

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlwork/pawl/store"
)

// Cancel does with the transaction what [Engine.Cancel] does: nothing is cancelled
// before the commit, and a rollback leaves nothing of it, nor of its entry in the
// audit log. A running job is asked to stop and hears of it after the commit,
// within a second or so. A job that somebody else's open transaction holds is
// answered Busy at once (P8).
func (t *Tx) Cancel(ctx context.Context, id ID) (Change, error) {
	return t.change(ctx, id, store.OperatingTx.Cancel)
}

// Retry does with the transaction what [Engine.Retry] does; see Cancel.
func (t *Tx) Retry(ctx context.Context, id ID) (Change, error) {
	c, err := t.change(ctx, id, store.OperatingTx.Retry)
	if err == nil && c == Changed {
		t.hint(store.Hint{Subject: store.SubjectQueue})
	}
	return c, err
}

// Delete does with the transaction what [Engine.Delete] does; see Cancel.
func (t *Tx) Delete(ctx context.Context, id ID) (Change, error) {
	return t.change(ctx, id, store.OperatingTx.Delete)
}

// Requeue does with the transaction what [Engine.Requeue] does; see Cancel.
func (t *Tx) Requeue(ctx context.Context, id ID, queue string) (Change, error) {
	return t.operate(ctx, store.Verb{Name: store.VerbRequeue, Queue: queue}, id)
}

// SetPriority does with the transaction what [Engine.SetPriority] does; see Cancel.
func (t *Tx) SetPriority(ctx context.Context, id ID, priority int) (Change, error) {
	return t.operate(ctx, store.Verb{Name: store.VerbPriority, Priority: priority}, id)
}

// RunNow does with the transaction what [Engine.RunNow] does; see Cancel.
func (t *Tx) RunNow(ctx context.Context, id ID) (Change, error) {
	return t.operate(ctx, store.Verb{Name: store.VerbRunNow}, id)
}

func (t *Tx) operate(ctx context.Context, v store.Verb, id ID) (Change, error) {
	tx, ok := t.tx.(store.VerbTx)
	if !ok {
		return 0, fmt.Errorf("pawl: transactions of this store change no jobs: %w", errors.ErrUnsupported)
	}
	changes, err := tx.Operate(ctx, v, []ID{id}, operatorOf(ctx))
	if err != nil {
		return 0, err
	}
	if changes[0] == Changed {
		t.hint(store.Hint{Subject: store.SubjectQueue})
	}
	return changes[0], nil
}

func (t *Tx) change(
	ctx context.Context, id ID, verb func(store.OperatingTx, context.Context, []ID, store.Operator) ([]Change, error),
) (Change, error) {
	tx, ok := t.tx.(store.OperatingTx)
	if !ok {
		return 0, fmt.Errorf("pawl: transactions of this store change no jobs: %w", errors.ErrUnsupported)
	}
	changes, err := verb(tx, ctx, []ID{id}, operatorOf(ctx))
	if err != nil {
		return 0, err
	}
	if changes[0] == Asked {
		t.hint(store.Hint{Subject: store.SubjectJob})
	}
	return changes[0], nil
}

// hint is told to this process after the commit. It only makes the process look: a
// savepoint of the caller's may have taken the change back.
func (t *Tx) hint(h store.Hint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hints = append(t.hints, h)
}
