package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// ErrInsideTx: an engine call was made with the context of a transaction's
// callback, or on SQLite a write of DB. It would wait for itself; use the Tx's
// own methods.
var ErrInsideTx = store.ErrInsideTx

// txKey marks a context as inside a transaction of an engine.
type txKey struct{ engine *Engine }

// Tx is one transaction: jobs and the user's own rows in it commit together or
// not at all (P3). It is used by one goroutine at a time.
type Tx struct {
	engine *Engine
	ctx    context.Context
	tx     store.Tx

	mu     sync.Mutex // the end of a transaction may come from any goroutine
	hints  []store.Hint
	ending []*Info // runs that end with this transaction
	moves  []*EventBatch
	acks   []*consumer.Message // that are acknowledged with it
}

// Tx runs fn in a transaction of the store's database and commits when it
// returns nil. Engine calls made with the callback's context are refused with
// ErrInsideTx, and so is what would wait for the transaction on the DB of SQLite:
// BeginTx and statements that write. On SQLite everyone who writes waits meanwhile, so a transaction
// held longer than the store's limit [5 s] is rolled back with ErrTxTooLong.
func (e *Engine) Tx(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	if fn == nil {
		return job.Invalid("fn", "nil", "must be a function")
	}
	if err := e.usable(ctx); err != nil {
		return err
	}
	tx, err := e.begin(ctx)
	if err != nil {
		return err
	}
	open := true
	defer func() {
		if open { // fn returned an error or panicked
			err = errors.Join(err, tx.rollback(ctx))
		}
	}()
	if err := fn(tx.ctx, tx); err != nil {
		return err
	}
	open = false
	return tx.commit(ctx)
}

// begin opens a transaction of the store's own.
func (e *Engine) begin(ctx context.Context) (*Tx, error) {
	stx, err := e.store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	tx := &Tx{engine: e, ctx: context.WithValue(ctx, txKey{e}, true), tx: stx}
	if m, ok := stx.(store.MarkingTx); ok {
		tx.ctx = m.Mark(tx.ctx)
	}
	return tx, nil
}

func (t *Tx) rollback(ctx context.Context) error {
	err := t.tx.Rollback(context.WithoutCancel(ctx))
	t.tell((*runner.Task).NotFinishedInTx)
	t.moved(errRolledBack)
	t.acked(errRolledBack)
	return err
}

func (t *Tx) commit(ctx context.Context) error {
	if err := t.tx.Commit(ctx); err != nil {
		t.ended(err)
		return err
	}
	t.tell((*runner.Task).FinishedInTx)
	t.ended(nil)
	return nil
}

// tell lets the runs that end with this transaction know what became of it.
func (t *Tx) tell(what func(*runner.Task)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.ending {
		what(i.task)
	}
}

// ended acts on the end of the transaction: its jobs are looked for at once.
//
// Nothing is told to the runs when it is committed: a savepoint of the caller's
// may have taken their ends back before. Each of them is ended once more by the
// runner, and the store's answer tells.
func (t *Tx) ended(err error) {
	t.moved(err)
	t.acked(err)
	switch {
	case err == nil:
	case errors.Is(err, ErrOutcomeUnknown):
		t.tell((*runner.Task).UnclearInTx)
	default:
		t.tell((*runner.Task).NotFinishedInTx)
		return
	}
	t.mu.Lock()
	hints := t.hints
	t.mu.Unlock()
	t.engine.hub.Ready(hints...) // after an unknown outcome they may be there
}

// Within makes a Tx of a transaction that a store package vouches for; users
// call sqlite.Within or postgres.Within. Its owner commits it.
func (e *Engine) Within(tx store.Tx) *Tx {
	t := &Tx{engine: e, ctx: context.Background(), tx: tx}
	if w, ok := tx.(store.WatchedTx); ok {
		w.OnEnd(t.ended)
	}
	return t
}

// Store is the transaction as its store has it, for packages that extend it.
func (t *Tx) Store() store.Tx { return t.tx }

// Enqueue hands in a job that exists when the transaction commits.
func (t *Tx) Enqueue(ctx context.Context, args Args, opts ...EnqueueOption) (Receipt, error) {
	rs, err := t.EnqueueMany(ctx, Item{args, opts})
	if err != nil {
		return Receipt{}, err
	}
	return rs[0], nil
}

// EnqueueMany hands in jobs in order.
func (t *Tx) EnqueueMany(ctx context.Context, items ...Item) ([]Receipt, error) {
	drafts, end, err := t.engine.drafts(ctx, items)
	if err != nil {
		return nil, err
	}
	receipts, err := t.tx.Enqueue(ctx, drafts)
	end(err)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.hints = append(t.hints, wake.Hints(drafts)...)
	t.mu.Unlock()
	return receipts, nil
}

// Running is a job in its handler: every *Job is one.
type Running interface{ info() *Info }

// Finish ends the handler's job as done when the transaction commits, which
// makes the transaction's effects exactly-once in this database: a run that has
// lost its lease gets ErrLeaseLost, and its effects roll back. The handler
// returns nil afterwards.
func (t *Tx) Finish(j Running) error {
	i, err := running(j)
	if err != nil {
		return err
	}
	return t.finish(i, i.says.result)
}

// FinishResult is Finish with a result that is kept with the job.
func (t *Tx) FinishResult(j Running, result any) error {
	i, err := running(j)
	if err != nil {
		return err
	}
	if err := i.setResult(result); err != nil {
		return err
	}
	return t.finish(i, i.says.result)
}

// running refuses a job that no handler was given: one made by hand in a test.
func running(j Running) (*Info, error) {
	if j == nil || j.info().task == nil {
		return nil, job.Invalid("job", "made by hand", "must be one that a handler was given")
	}
	return j.info(), nil
}

func (t *Tx) finish(i *Info, result []byte) error {
	if s := i.says.suspended.Load(); s != nil {
		return s
	}
	t.mu.Lock()
	twice := slices.Contains(t.ending, i)
	t.mu.Unlock()
	if twice {
		return job.Invalid("job", i.ID, "is finished already in this transaction")
	}
	end := i.task.End(job.Outcome{Kind: job.Succeeded, Result: result, Then: i.says.followUps()})
	verdicts, err := t.tx.Finish(t.ctx, i.task.Worker(), []job.End{end})
	if err != nil {
		return err
	}
	if verdicts[0] != job.Applied {
		return fmt.Errorf("finish job %s run %d: %w", i.ID, i.Run, ErrLeaseLost)
	}
	t.mu.Lock()
	t.ending = append(t.ending, i)
	if end.Then != nil {
		t.hints = append(t.hints, wake.Hints(end.Then.Drafts)...)
	}
	t.mu.Unlock()
	i.task.FinishingInTx(end)
	return nil
}

// Exec runs the user's own SQL and returns how many rows it changed.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return t.tx.Exec(ctx, query, args...)
}
