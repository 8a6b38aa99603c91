package pawl

import (
	"context"
	"time"
)

// Work runs one job.
type Work func(ctx context.Context, j *Info) error

// Middleware wraps the running of a job. It may change the context, look at the
// error, and return another; it must call next at most once. A panic of the
// handler is a *PanicError here; one that is not passed on has failed all the
// same. IsSnooze, IsThrottled, IsRetryIn and IsDead tell what a handler says from its faults.
type Middleware func(next Work) Work

func wrap(work Work, layers []Middleware) Work {
	for i := len(layers) - 1; i >= 0; i-- {
		work = layers[i](work)
	}
	return work
}

// Hooks are called by the engine. They must be quick and safe for concurrent use.
type Hooks struct {
	// Enqueue sees checked drafts before they are handed to the store and may
	// change them (they are checked again) or refuse them all with an error.
	Enqueue func(ctx context.Context, drafts []Draft) error
	// AroundEnqueue stands around what Enqueue let pass, for traces: it may add headers
	// to the drafts (they are checked again), and end, if there is one, is called once
	// with what became of the call. Nil means that the store has taken the drafts;
	// those of a Tx, of Then and of schedules are only handed over by then, and exist
	// when what they belong to commits.
	AroundEnqueue func(ctx context.Context, drafts []Draft) (end func(error))
	// Finish sees the end of each run of this process once the store has committed it.
	// A job that ends without one (its worker was lost too often, its deadline
	// passed while it waited) is only told in the log, by whoever noticed.
	Finish func(Finished)
	// Error sees each error or panic (as a *PanicError) of a handler. final says that no attempt is
	// left, or that none was wanted.
	Error func(ctx context.Context, j *Info, err error, final bool)
}

// Finished is the committed end of a run.
type Finished struct {
	ID    ID
	Kind  string
	Queue string
	Run   int64
	State State // StateWaiting when it goes on later
	Took  time.Duration
	InTx  bool // the handler's own transaction ended it (Tx.Finish)
}
