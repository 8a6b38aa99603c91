package sqlite

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
)

// sayAfter is how long a caller waits for a user's transaction before the log
// says which one. An engine call inside of a transaction's callback, with
// another context than the callback's, waits for itself: it is only answered
// when the transaction has reached Options.TxLimit.
const sayAfter = time.Second

// takeTurn takes the write lock for a user's statement or transaction.
func (s *Store) takeTurn(ctx context.Context) error {
	if in, ok := ctx.Value(insideKey{s}).(*inside); ok && !in.over.Load() {
		return store.ErrInsideTx
	}
	if tx := s.holder.Load(); tx != nil {
		defer tx.awaited()()
	}
	return s.lock.acquire(ctx)
}

// awaited notes that the caller begins to wait for the transaction; the
// function that it returns, that it no longer does.
func (tx *userTx) awaited() (ended func() bool) {
	caller := here()
	return time.AfterFunc(sayAfter, func() { tx.sayAwaited(caller) }).Stop
}

// sayAwaited logs the first caller from the user's program that waits too long.
// What the engine itself waits for is no news: it is logged if the transaction
// reaches its limit.
func (tx *userTx) sayAwaited(caller callsite) {
	at := caller.String()
	if at == "" || tx.c.s.holder.Load() != tx || tx.said.Swap(true) {
		return
	}
	tx.c.s.logger.Warn("pawl: a call waits for the transaction that holds the write lock; if it is made inside of that transaction it waits for itself: use the Tx's own methods",
		"store", tx.c.s.name, "waiting", at, "waits", sayAfter, "transaction", tx.at.String(), "held", tx.c.s.clock.since(tx.since))
}
