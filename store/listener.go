package store

import (
	"context"

	"github.com/pawlwork/pawl/job"
)

// Listener is a store that can tell of commits made elsewhere.
type Listener interface {
	// Listen calls hear until ctx ends or the connection is lost. While it runs
	// the engine polls rarely; hearing too much is harmless, hearing nothing
	// costs at most one poll interval.
	Listen(ctx context.Context, hear func(Hint)) error
}

// Examiner is a store that knows more about its health than that it answers.
type Examiner interface {
	// Health is an error that says what needs somebody's attention.
	Health(ctx context.Context) error
}

// WatchedTx is a Tx that its caller ends, and whose end the store sees.
type WatchedTx interface {
	Tx
	// OnEnd has f called once, after the transaction in which the Tx was used has
	// ended: with nil when it is committed, with an error that wraps
	// job.ErrOutcomeUnknown when nobody knows, else when it is rolled back. It may
	// be called from any goroutine. Call it before the Tx is used.
	OnEnd(f func(error))
}

// MarkingTx is a Tx that is known by the context of whoever works in it, so that
// the store's own database handle can tell a call that would wait for the
// transaction it is made in, and answer ErrInsideTx.
type MarkingTx interface {
	Tx
	// Mark makes the context of what is done in the transaction.
	Mark(ctx context.Context) context.Context
}

// OperatingTx is a Tx in which operators' verbs commit with the user's rows: by
// the rules of Jobs, with their audit entries in the same transaction. Nobody waits
// in it for somebody else's open transaction: a job, or a unique key, that one
// holds is answered Busy, and the transaction can go on (P8). A run that is asked
// to stop hears of it after the commit.
type OperatingTx interface {
	Tx
	Cancel(ctx context.Context, ids []job.ID, op Operator) ([]Change, error)
	Retry(ctx context.Context, ids []job.ID, op Operator) ([]Change, error)
	Delete(ctx context.Context, ids []job.ID, op Operator) ([]Change, error)
}

// TxReader is a transaction that can say what it sees, for tests that look into
// one before it commits.
type TxReader interface {
	// Seen returns those of ids that are jobs, live or archived, as the
	// transaction sees them: its own that are not committed yet as well.
	Seen(ctx context.Context, ids []job.ID) ([]job.ID, error)
}
