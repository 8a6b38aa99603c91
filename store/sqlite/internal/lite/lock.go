package lite

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// WriteLock is the one lock of a process for writing to the file. Whoever asks
// first is served first: Go queues the senders of a channel in order, so that
// neither the writer nor users' transactions can starve the other.
type WriteLock struct {
	turn   chan struct{}
	holder atomic.Pointer[Holder] // the user's transaction that has the lock

	store  string // for messages
	clock  *Clock
	logger *slog.Logger
}

// NewWriteLock is a lock that nobody has, of the store of that name.
func NewWriteLock(store string, c *Clock, logger *slog.Logger) *WriteLock {
	return &WriteLock{turn: make(chan struct{}, 1), store: store, clock: c, logger: logger}
}

// Acquire takes the lock, unless ctx ends before.
func (l *WriteLock) Acquire(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release lets the next one have it.
func (l *WriteLock) Release() { <-l.turn }

// Holder is a user's transaction that may hold the lock for long.
type Holder struct {
	At    CallSite // where it began
	Since time.Time
	said  atomic.Bool // the log says that it is waited for
}

// Hold notes which transaction has the lock, nil when none has it any more.
func (l *WriteLock) Hold(h *Holder) { l.holder.Store(h) }

// sayAfter is how long a caller waits for a user's transaction before the log
// says which one. An engine call inside of a transaction's callback, with
// another context than the callback's, waits for itself: it is only answered
// when the transaction has reached Options.TxLimit.
const sayAfter = time.Second

// Await notes that the caller begins to wait for the transaction that has the
// lock, if one has; the function that it returns, that it no longer does.
func (l *WriteLock) Await() (ended func() bool) {
	h := l.holder.Load()
	if h == nil {
		return nobodyAwaited
	}
	caller := Here()
	return time.AfterFunc(sayAfter, func() { l.sayAwaited(h, caller) }).Stop
}

func nobodyAwaited() bool { return true }

// sayAwaited logs the first caller from the user's program that waits too long.
// What the engine itself waits for is no news: it is logged if the transaction
// reaches its limit.
func (l *WriteLock) sayAwaited(h *Holder, caller CallSite) {
	at := caller.String()
	if at == "" || l.holder.Load() != h || h.said.Swap(true) {
		return
	}
	l.logger.Warn("pawl: a call waits for the transaction that holds the write lock; "+
		"if it is made inside of that transaction it waits for itself: use the Tx's own methods",
		"store", l.store, "waiting", at, "waits", sayAfter, "transaction", h.At.String(), "held", l.clock.Since(h.Since))
}
