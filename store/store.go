package store

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Store is one namespace of one database.
type Store interface {
	Jobs
	Workers
	Control
	Upkeep
	Reader
	// Begin opens a transaction in which jobs and the user's own rows commit
	// together. The store may end one that is held too long ([ErrTxTooLong]).
	Begin(ctx context.Context) (Tx, error)
	// Close waits for calls under way and releases everything. It is idempotent;
	// calls after it are answered ErrClosed.
	Close() error
}

// Opener makes a store ready for use: connects, checks or migrates the schema,
// binds the namespace.
type Opener interface {
	Open(ctx context.Context, s Settings) (Store, error)
}

// Settings is what the engine tells a store when it opens.
type Settings struct {
	Namespace string // empty means "default"
	Migrate   Migrate
	Logger    *slog.Logger
	// Keep is the retention of jobs that the store ends itself (cancelled,
	// expired, lost too often), by queue. Nil means the defaults.
	Keep func(queue string) job.Keep
	// MaxLost is how many runs of a job may end with their process; 0 means job.MaxLost.
	MaxLost int
	// LostAfter is how long a worker of this process may be silent; 0 means that
	// it is not known. What the store lets a user hold has to end before.
	LostAfter time.Duration
}

// Migrate says what opening may do to the schema.
type Migrate int

// What opening does when the schema is older than the build.
const (
	MigrateAuto  Migrate = iota // bring it up to date, under a lock
	MigrateCheck                // refuse with ErrSchemaOlder
	MigrateOff                  // do not look
)

// Jobs are the transitions of jobs.
type Jobs interface {
	// Enqueue accepts drafts (already checked), all or none, in order. A draft
	// whose unique key is held, or whose id was accepted before when Resend is
	// set, adds nothing and is answered as a duplicate. Nil means on disk (P1). Drafts
	// that ask for it begin in the commit (job.HandOver).
	Enqueue(ctx context.Context, drafts []job.Draft) ([]job.Receipt, error)
	// Claim leases ready jobs to a worker. Repeating a Seq returns the jobs of
	// that claim which the worker still holds, and claims nothing new.
	// It is ErrWorkerLost for a worker that is not registered or was lost.
	Claim(ctx context.Context, c Claim) (ClaimReply, error)
	// Finish ends runs, each fenced by its worker and run number. One whose job
	// somebody's open transaction holds may be answered Held: the others are not
	// kept waiting for it. One that is sent again after its answer was lost says so
	// (End.Again), and is answered Already if its worker had ended the run. Verdicts
	// beside an error are of the first ends, which are settled: the error is that of
	// the others.
	Finish(ctx context.Context, w job.WorkerID, ends []job.End) ([]job.Verdict, error)
	// Note keeps progress and log lines of runs that go on, fenced like Finish. A
	// beginning whose job somebody's open transaction holds may be answered Held:
	// nothing of that note is kept. Progress alone is passed over there.
	Note(ctx context.Context, w job.WorkerID, notes []Note) ([]job.Verdict, error)
	// Cancel ends jobs that are not running and asks running ones to stop. Here
	// as with Retry and Delete, one that somebody's open transaction holds may be
	// answered Busy: the others are not kept waiting for it.
	Cancel(ctx context.Context, ids []job.ID, op Operator) ([]Change, error)
	// Retry makes dead, cancelled or parked jobs wait again with a fresh attempt
	// budget, and scheduled ones due at once.
	Retry(ctx context.Context, ids []job.ID, op Operator) ([]Change, error)
	// Delete removes jobs that are not running, and asks running ones to cancel.
	Delete(ctx context.Context, ids []job.ID, op Operator) ([]Change, error)
}

// Claim asks for work.
type Claim struct {
	Worker job.WorkerID
	// Seq numbers the worker's claims from 1 and ascends; the same number again
	// asks for the answer of that claim.
	Seq    int64
	Queues []QueueClaim
	Offer  job.Offer
	// Gates are the limits that hold, as far as the claimer knows; nil for none. A job
	// that has a gate by them, and waits in front of it, is put behind it instead of
	// being taken. What waits behind gates is taken in turn, as far as they allow.
	Gates *job.GateRules
	// Opened are the gates of runs that this worker has ended since its last claim:
	// they may have room.
	Opened []int64
	// Bytes bounds the answer: a job is left once the arguments, headers and
	// failures of those before it have come to so many. Each queue has an equal
	// part of them, and gets one job in any case. 0 means ClaimBytes.
	Bytes int64
	// Begun names runs of earlier claims whose handlers have begun since.
	Begun []RunRef
}

// ClaimBytes is how much one claim carries when it does not say.
const ClaimBytes = 16 << 20

// PerQueue is the part of Bytes that each queue has.
func (c *Claim) PerQueue() int64 {
	asked := int64(0)
	for i := range c.Queues {
		if c.Queues[i].Limit > 0 {
			asked++
		}
	}
	return max(1, cmp.Or(c.Bytes, ClaimBytes)/max(1, asked))
}

// QueueClaim is the part of a claim for one queue. What waits behind gates there is
// looked for only when the claim's rules have any for the queue.
type QueueClaim struct {
	Queue string
	Limit int // jobs at most
	// Start is how many of them start at once. The rest is prefetched, and never
	// holds a job that was rescued before: such a job is only claimed to start at
	// once. None counts as begun before its worker says so.
	Start int
	// Aging shifts the order: a job of priority p counts as due p × Aging later,
	// so that low priority waits its turn but is not starved. 0 means strict.
	Aging time.Duration
}

// ClaimReply is the answer to a claim.
type ClaimReply struct {
	Jobs []LeasedJob // by queue as asked, each in claim order
	// Next is how long until another waiting job of these queues falls due; 0
	// when none is known. Only meaningful for queues that were not filled.
	Next time.Duration
	// More says that a look ended at its bound on skipped rows (unknown kinds,
	// missing capabilities) or on bytes: look again at once, the store goes on
	// from there.
	More bool
	Now  time.Time // the store's clock at the claim
	// Cooling are those of the queues that cool down: there is nothing to be had from
	// them for so long, and no use in looking.
	Cooling []Cooling
	// Revision is that of the settings (SettingsReply); 0 when the claim did not look.
	Revision int64
}

// Cooling is a queue that cools down.
type Cooling struct {
	Queue string
	Left  time.Duration // by the store's clock at the claim; more than 0
}

// AddCooling notes that a queue cools down until a time, once.
func (r *ClaimReply) AddCooling(queue string, until time.Time) {
	for i := range r.Cooling {
		if r.Cooling[i].Queue == queue {
			return
		}
	}
	r.Cooling = append(r.Cooling, Cooling{queue, max(until.Sub(r.Now), time.Microsecond)})
}

// LeasedJob is a job as a claim hands it over.
type LeasedJob struct {
	job.Job
	Begun bool // its handler has begun, as the store knows: only in the answer to a repeated claim
	Ahead bool // its key was away and missed turns: it starts before what was claimed earlier and has not begun
}

// RunRef names one run of one job.
type RunRef struct {
	ID  job.ID
	Run int64
}

// Note is what a run says while it goes on.
type Note struct {
	RunRef
	Begun    bool // its handler begins now: should its worker be lost, the run counts as lost with it
	Progress *job.Progress
	Logs     []job.LogLine
}

// Operator says on whose behalf a change is made. It goes into the audit log
// in the transaction of the change; an empty name writes no entry.
type Operator struct {
	Name string
	Note string
}

// Change is the answer to one id of an operator's call.
type Change uint8

// The answers.
const (
	NotFound  Change = iota + 1 // no such job
	Changed                     // done
	Asked                       // it is running: its handler was asked to stop
	Ended                       // it has ended already; nothing changed
	Duplicate                   // retry: another job holds its unique key
	Active                      // retry: it is running or ready already; cancel: its state is none of this build's; nothing changed
	Busy                        // an open transaction holds it; nothing changed
	Same                        // requeue, set priority: it is there already; nothing changed
)

// Tx is one open transaction of the store's database. It is used by one
// goroutine at a time.
type Tx interface {
	Enqueue(ctx context.Context, drafts []job.Draft) ([]job.Receipt, error)
	Finish(ctx context.Context, w job.WorkerID, ends []job.End) ([]job.Verdict, error)
	// Exec and Query run the user's own SQL.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	Query(ctx context.Context, query string, args ...any) (Rows, error)
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// Rows are the answer to a query.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}
