package pawl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/supervise"
)

// supervised runs the worker by its own policy.
func (w *CursorWorker) supervised(ctx context.Context) error {
	select {
	case <-w.ended: // in an earlier Run
		return nil
	default:
	}
	stopped := false
	tree, err := supervise.New(supervise.Config{
		Logger: w.engine.cfg.Logger, Grace: w.engine.cfg.Grace,
		Services: []supervise.Service{supervise.Loop(serviceName("cursor", 0, w.cursor.name), func(ctx context.Context) error {
			err := w.run(ctx)
			stopped = err == nil && ctx.Err() == nil
			return err
		}, supervise.Restart(w.settings.restart))},
	})
	if err != nil {
		return err
	}
	if err := tree.Start(ctx); err != nil {
		return err
	}
	err = tree.Wait()
	tree.Stop(context.WithoutCancel(ctx))
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		err = fmt.Errorf("cursor %q: %w", w.cursor.name, err)
		w.end(err)
	case stopped:
		w.end(nil)
	}
	return err
}

// run holds the cursor and works, until ctx ends, the handler stops it or panics.
func (w *CursorWorker) run(ctx context.Context) error {
	for {
		if err := w.take(ctx); err != nil {
			return err
		}
		stop, err := w.hold(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrCursorLost), errors.Is(err, ErrPosition):
			w.engine.cfg.Logger.Warn("a cursor is not held any more", "cursor", w.cursor.name, "error", err)
		case err != nil || stop:
			return err
		}
	}
}

// take waits until the cursor is free, and opens it.
func (w *CursorWorker) take(ctx context.Context) error {
	c := w.cursor
	for trouble := 0; ; {
		err := c.open(ctx, w.settings.start)
		switch {
		case err == nil:
			if w.suspects = 0; c.lost >= suspected {
				w.suspects = w.settings.size
			}
			return nil
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrCursorHeld):
			trouble = 0
			sleep(ctx, c.lease/4)
		case errors.Is(err, ErrCursorFilter), errors.Is(err, ErrInvalid):
			return err
		default:
			trouble = w.troubled(ctx, "open", trouble, err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// troubled waits after an error of the store, longer each time.
func (w *CursorWorker) troubled(ctx context.Context, what string, times int, err error) int {
	w.engine.cfg.Logger.Warn("a cursor worker waits for its store", "cursor", w.cursor.name, "doing", what, "error", err)
	sleep(ctx, min(100*time.Millisecond<<min(times, 10), 5*time.Second))
	return times + 1
}

// sleep waits, or not as long if ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// hold works while it holds the cursor.
func (w *CursorWorker) hold(ctx context.Context) (stop bool, err error) {
	own, lose := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		w.renew(own, lose)
	}()
	defer func() {
		lose(nil)
		<-renewed
		w.free(ctx)
	}()
	for trouble := 0; ; {
		b, err := w.cursor.Poll(own, w.size())
		switch {
		case own.Err() != nil:
			return false, context.Cause(own)
		case errors.Is(err, ErrPosition), errors.Is(err, ErrCursorLost):
			return false, err
		case err != nil:
			trouble = w.troubled(own, "poll", trouble, err)
			continue
		}
		trouble = 0
		if b.Empty() {
			if err := w.cursor.Wait(own); err != nil {
				return false, context.Cause(own)
			}
			continue
		}
		if stop, err := w.batch(own, b); stop || err != nil {
			return stop, err
		}
	}
}

// size is that of the next batch.
func (w *CursorWorker) size() int {
	if w.suspects > 0 {
		return 1
	}
	return w.limit
}

// renew keeps the lease. A turn that has moved on meanwhile is no loss.
func (w *CursorWorker) renew(ctx context.Context, lose context.CancelCauseFunc) {
	c := w.cursor
	log, _ := c.engine.log()
	for before := int64(-1); ; {
		sleep(ctx, c.lease/3)
		if ctx.Err() != nil {
			return
		}
		m := c.holding()
		err := log.RenewCursor(ctx, m)
		switch {
		case !errors.Is(err, ErrCursorLost):
			before = -1
		case before == m.Turn: // and it was so a while ago
			lose(err)
			return
		default:
			before = m.Turn
		}
	}
}

// holding is what the store knows a holder by.
func (c *Cursor) holding() store.CursorMove {
	c.mu.Lock()
	defer c.mu.Unlock()
	return store.CursorMove{Name: c.name, Turn: c.turn, Holder: c.holder, To: c.at, Lease: c.lease}
}

// free lets others have the cursor at once.
func (w *CursorWorker) free(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	log, _ := w.engine.log()
	if err := log.FreeCursor(ctx, w.cursor.holding()); err != nil && !errors.Is(err, ErrCursorLost) {
		w.engine.cfg.Logger.Warn("a cursor is free only when its lease is over", "cursor", w.cursor.name, "error", err)
	}
}

// batch hands out one batch and acts on what came of it.
func (w *CursorWorker) batch(ctx context.Context, b *EventBatch) (stop bool, err error) {
	c := w.cursor
	if w.suspects > 0 && c.lost >= suspected+w.settings.deliveries {
		return false, w.bury(ctx, b, fmt.Sprintf("the process of its handler was lost %d times", c.lost))
	}
	w.keep()
	b.work = &batchWork{ctx: ctx, engine: w.engine}
	panicked, err := w.call(ctx, b)
	switch {
	case ctx.Err() != nil && err != nil && !errors.Is(err, ErrStopBefore):
		return false, errors.Join(context.Cause(ctx), b.work.end(b, err))
	case err == nil, errors.Is(err, ErrStopAfter):
		stop = err != nil
		if err = b.work.end(b, nil); err == nil {
			w.passed()
			return stop, nil
		}
		if errors.Is(err, ErrCursorLost) || errors.Is(err, ErrPosition) {
			return false, err
		}
		return false, w.failed(ctx, b, err, nil) // the transaction's own fault, perhaps
	case errors.Is(err, ErrStopBefore):
		_ = b.work.end(b, err)
		c.Rewind()
		return true, nil
	}
	_ = b.work.end(b, err)
	return false, w.failed(ctx, b, err, panicked)
}

// keep has the next commit remember that holders were lost, while what follows is suspected.
func (w *CursorWorker) keep() {
	c := w.cursor
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.losses = 0; w.suspects > 1 {
		c.losses = suspected
	}
}

// passed notes that a batch is done.
func (w *CursorWorker) passed() {
	w.failures, w.pause = 0, 0
	w.cursor.lost = 0
	if w.suspects > 0 {
		w.suspects--
		return
	}
	w.limit = min(2*w.limit, w.settings.size)
}

// panicked is a panic of a handler.
type panicked struct {
	value any
	stack []byte
}

// call runs the handler.
func (w *CursorWorker) call(ctx context.Context, b *EventBatch) (p *panicked, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		p = &panicked{recover(), debug.Stack()}
		err = fmt.Errorf("panic: %v", p.value)
		if p.value == nil {
			err = errors.New("the handler left through runtime.Goexit")
		}
	}()
	err = w.handle(ctx, b)
	returned = true
	return nil, err
}

// failed halves what is handed out, down to the one event that fails, and gives that up
// after its deliveries. A panic goes on to the restart policy.
func (w *CursorWorker) failed(ctx context.Context, b *EventBatch, cause error, p *panicked) error {
	c := w.cursor
	c.Rewind()
	log := w.engine.cfg.Logger.With("cursor", c.name, "events", len(b.Events), "error", cause)
	if !b.from.Equal(w.front) {
		w.failures, w.front = 0, b.from
	}
	if len(b.Events) > 1 {
		w.limit = max(1, len(b.Events)/2)
		w.failures = 0
	} else if w.failures++; w.failures >= w.settings.deliveries {
		return w.bury(ctx, b, cause.Error())
	}
	if p != nil {
		log.Error("a handler of a cursor panicked", "stack", string(p.stack))
		return cause
	}
	w.pause = min(max(2*w.pause, 100*time.Millisecond), 5*time.Second)
	log.Warn("a batch of a cursor failed, and comes again", "in", w.pause)
	sleep(ctx, w.pause)
	return nil
}

// bury makes a dead letter of the one event of a batch, and moves the cursor past it, in one
// transaction: it is in one of the two places.
func (w *CursorWorker) bury(ctx context.Context, b *EventBatch, reason string) error {
	d := stream.Delivery{Event: &b.Events[0], Failures: w.failures, Losses: w.cursor.lost}
	letter := d.Letter(w.settings.deadLetter, w.cursor.name, reason, time.Time{})
	w.keep()
	err := w.engine.Tx(ctx, func(ctx context.Context, tx *Tx) error {
		in, ok := tx.tx.(store.TxLog)
		if !ok {
			return noLog("this transaction")
		}
		if _, err := in.Append(ctx, []stream.Publication{letter}); err != nil {
			return err
		}
		return tx.Commit(b)
	})
	if err != nil {
		w.cursor.Rewind()
		if errors.Is(err, ErrCursorLost) || errors.Is(err, ErrPosition) {
			return err
		}
		w.troubled(ctx, "bury", 3, err)
		return nil
	}
	w.engine.hub.Ready(store.Hint{Subject: store.SubjectTopic})
	w.engine.cfg.Logger.Error("an event is a dead letter", "cursor", w.cursor.name, "topic", d.Event.Topic, "event", d.Event.ID,
		"letters", w.settings.deadLetter, "failures", d.Failures, "losses", d.Losses, "reason", reason)
	w.passed()
	return nil
}

// batchWork is the transaction of a batch, once its handler has asked for it.
type batchWork struct {
	ctx    context.Context
	engine *Engine
	tx     *Tx
	fault  error
}

// Tx is the transaction that the batch of a cursor worker commits in: rows, jobs and events
// of the handler are there together with the cursor's new position, or not at all. It
// begins with the first call; on SQLite everyone who writes waits until the handler returns.
// Of a batch that Poll has returned it is an error in each of its methods: use Engine.Tx
// and Tx.Commit there.
func (b *EventBatch) Tx() *Tx {
	w := b.work
	if w == nil {
		return &Tx{engine: b.cursor.engine, ctx: context.Background(), tx: failedTx{errNoBatchTx}}
	}
	if w.tx == nil {
		if w.tx, w.fault = w.engine.begin(w.ctx); w.fault != nil {
			w.tx = &Tx{engine: w.engine, ctx: w.ctx, tx: failedTx{w.fault}}
		}
	}
	return w.tx
}

var errNoBatchTx = fmt.Errorf("%w: a batch of Poll has no transaction: use Engine.Tx and Tx.Commit", errors.ErrUnsupported)

// end commits the batch, or undoes what the handler did.
func (w *batchWork) end(b *EventBatch, cause error) error {
	switch {
	case w.fault != nil:
		return w.fault
	case cause != nil && w.tx != nil:
		return w.tx.rollback(w.ctx)
	case cause != nil:
		return nil
	case w.tx == nil:
		return b.Commit(w.ctx)
	}
	if err := w.tx.Commit(b); err != nil {
		return errors.Join(err, w.tx.rollback(w.ctx))
	}
	return w.tx.commit(w.ctx)
}

// failedTx is a transaction that could not be begun: each call says why.
type failedTx struct{ fault error }

func (f failedTx) Enqueue(context.Context, []job.Draft) ([]job.Receipt, error) { return nil, f.fault }

func (f failedTx) Finish(context.Context, job.WorkerID, []job.End) ([]job.Verdict, error) {
	return nil, f.fault
}

func (f failedTx) Append(context.Context, []stream.Publication) ([]stream.PublishReply, error) {
	return nil, f.fault
}

func (f failedTx) Exec(context.Context, string, ...any) (int64, error) { return 0, f.fault }

func (f failedTx) Query(context.Context, string, ...any) (store.Rows, error) { return nil, f.fault }

func (f failedTx) Commit(context.Context) error   { return f.fault }
func (f failedTx) Rollback(context.Context) error { return nil }
