package pawl

import (
	"errors"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// The errors of jobs. Test with errors.Is; they are job's own, under one roof.
var (
	ErrNotFound       = job.ErrNotFound       // no job with that id is live or archived; no such schedule or operation
	ErrInvalid        = job.ErrInvalid        // an input is out of bounds; the text names field, value and bound
	ErrLeaseLost      = job.ErrLeaseLost      // the run no longer owns its job; whatever it writes changes nothing
	ErrWorkerLost     = job.ErrWorkerLost     // this process was declared lost; Run registers it anew
	ErrOutcomeUnknown = job.ErrOutcomeUnknown // the answer of a commit was lost; send again with the same id
	ErrTimeout        = job.ErrTimeout        // cause of a handler's context: the attempt took too long
	ErrDeadline       = job.ErrDeadline       // cause of a handler's context: the job's deadline passed
	ErrCancelled      = job.ErrCancelled      // cause of a handler's context: the job was asked to cancel
	ErrStopping       = job.ErrStopping       // cause of a handler's context: the grace period of a stop ended
)

// The errors of stores. Test with errors.Is; the text around them names the
// file, the limit or the version.
var (
	ErrClosed      = store.ErrClosed      // Close was called
	ErrFull        = store.ErrFull        // the disk is full or failing
	ErrReadOnly    = store.ErrReadOnly    // file, folder or server does not take writes
	ErrBusy        = store.ErrBusy        // locked by another for longer than the busy limit
	ErrCorrupt     = store.ErrCorrupt     // the store is damaged
	ErrForeign     = store.ErrForeign     // not a database, or not one of Pawl
	ErrSchemaNewer = store.ErrSchemaNewer // this build is older than the oldest that may use the store
	ErrSchemaOlder = store.ErrSchemaOlder // the store needs a migration, and this engine may not migrate
	ErrNetworkFS   = store.ErrNetworkFS   // SQLite's locks are not safe on a network file system
	ErrTxTooLong   = store.ErrTxTooLong   // a transaction was held too long and is rolled back
	ErrForeignTx   = store.ErrForeignTx   // a transaction given to Within is not of the engine's database
	ErrLogHeld     = store.ErrLogHeld     // Health: somebody reads from SQLite's log without end
	ErrUnavailable = store.ErrUnavailable // the connection is lost; nothing was done
	ErrPosition    = store.ErrPosition    // a position of the event log is of another life of it, or lies behind it
	ErrInUse       = store.ErrInUse       // EraseNamespace: workers of the namespace are live
)

// The errors of the engine itself.
var (
	// ErrNotDone: the job has no result (yet); the text names its state.
	ErrNotDone = errors.New("pawl: job is not done")
	// ErrNoResult: the job is done and its handler kept no result.
	ErrNoResult = errors.New("pawl: job has no result")
	// ErrNoHandlers: Run was called and there is nothing for it to do.
	ErrNoHandlers = errors.New("pawl: no handlers are registered")
	// ErrNotReady: this process cannot do its part; the text says why.
	ErrNotReady = errors.New("pawl: not ready")
	// ErrConflict: Health: two owners, or two processes of one version, declare settings
	// differently; the text names them.
	ErrConflict = errors.New("pawl: settings are declared differently")
	// ErrMore: CancelAll or one of its like came to its bound; the text names it.
	ErrMore = errors.New("pawl: there are more")
	// ErrRateLimited: Engine.Acquire: the tokens come after the context's deadline, and
	// none were taken; the text says when.
	ErrRateLimited = errors.New("pawl: rate limited")
	// ErrSuspended: the job was given back while its handler runs, which has to return;
	// the text says what the job waits for. Also the cause of its context.
	ErrSuspended = errors.New("pawl: job is suspended")
	// ErrRunning: Run was called while it runs.
	ErrRunning = errors.New("pawl: engine is running already")
)
