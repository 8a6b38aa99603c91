package job

import (
	"fmt"
	"time"
)

// OutcomeKind is what a handler's return means.
type OutcomeKind uint8

// The outcomes of a run.
const (
	Succeeded   OutcomeKind = iota // the handler returned nil
	Failed                         // it returned an error, panicked or took too long: retry while attempts last
	GaveUp                         // it returned Dead: final
	Snoozed                        // it returned Snooze: again later, no attempt burned
	Released                       // it did not get to finish (stop, lost lease, never started): again at once, no attempt burned
	Undecoded                      // its arguments cannot be read by this build: parked, no attempt burned
	CancelSeen                     // it returned because it was asked to cancel
	OutOfTime                      // the job's deadline passed while it ran: final
	StoreFailed                    // it failed because the store was down, full or locked: again soon, no attempt burned, for a while
	Throttled                      // it returned Throttled: again when its queue, or the limit in Scope, has cooled down, no attempt burned
)

// Outcome is what one run came to.
type Outcome struct {
	Kind  OutcomeKind
	Timed bool // of a failure: Delay is the wait, the backoff function is not asked
	// Panicked: the handler did. What it was doing when its context was cancelled
	// explains an error, never a panic.
	Panicked bool

	Err     error         // what the handler returned, for the backoff function
	Message string        // of the error, where there is one; of a snooze or a throttle its reason
	Stack   string        // of a panic
	Delay   time.Duration // of a snooze, of a throttle, or of a failure that chose its time
	Scope   *string       // of a throttle: the limit that cools down instead of the queue; nil for the queue
	Result  []byte
	Then    *FollowUps // of a success
}

// Policy is what a worker brings to the decision.
type Policy struct {
	Backoff BackoffFunc
	Keep    Keep
}

// Keep says how long the archive keeps a finished job, by its final state.
// Negative means not at all (only a tombstone of its id for a day).
type Keep struct {
	Done, Dead, Cancelled time.Duration
}

// Retention when nothing is said.
const (
	KeepDone      = 7 * 24 * time.Hour
	KeepDead      = 30 * 24 * time.Hour
	KeepCancelled = 7 * 24 * time.Hour
	// KeepTombstone is how long the id of a job that is not kept still stops a resend.
	KeepTombstone = 24 * time.Hour
)

// WithDefaults fills the zero fields.
func (k Keep) WithDefaults() Keep {
	if k.Done == 0 {
		k.Done = KeepDone
	}
	if k.Dead == 0 {
		k.Dead = KeepDead
	}
	if k.Cancelled == 0 {
		k.Cancelled = KeepCancelled
	}
	return k
}

// For is how long a job that ends in the state is kept.
func (k Keep) For(s State) time.Duration {
	switch s {
	case Done:
		return k.Done
	case Dead:
		return k.Dead
	default:
		return k.Cancelled
	}
}

// End is how one run ends: a whole transition, fenced by ID and Run, that a
// store applies in one commit. Decide makes it; stores do not judge again,
// except that a job asked to cancel does not go back to waiting (see Settle).
type End struct {
	ID       ID
	Run      int64
	To       State         // Waiting, Suspended, Done, Dead or Cancelled
	Wait     Wait          // to Suspended: for what
	Burn     bool          // an attempt was used up
	Snooze   bool          // count it as put off
	Throttle bool          // count it as throttled
	Defer    bool          // count it as a suspect that could not run alone
	Rescue   bool          // count it as taken back from a lost worker
	Lose     bool          // count it as lost with its worker, which may be its doing
	Ties     Ties          // what its worker knows the job to have beside itself; the store looks for more
	Again    bool          // it was sent before and the answer was lost: Already, if an end of the run by this worker was committed
	Delay    time.Duration // to Waiting: due this long after the store's now
	Failure  []byte        // a Failure's Body, which AppendFailure adds with the store's time; nil for none
	Reason   string        // to Suspended, Dead or Cancelled, or of a snooze or throttle: why
	Result   []byte
	Keep     Keep
	Progress *Progress // the newest, when it changed
	Logs     []LogLine
	Then     *FollowUps // to Done: accepted in the same commit; nil for none
}

// Run is what Decide needs to know of the run that ended.
type Run struct {
	ID          ID
	Run         int64
	Used        int
	MaxAttempts int
	// StoreFailures is how many runs of this attempt failed because the store did.
	StoreFailures int
	// Throttles is how many runs were throttled in a row before this one.
	Throttles int
	Worker    WorkerID
	By        By
	Started   time.Time
	Ties      Ties // of the job, as it was claimed
	// Job is handed to the backoff function.
	Job *Job
}

// A run that fails because the store does burns no attempt: an outage of a
// minute would otherwise use up the attempts of every job that writes in a
// transaction. Each time the job waits twice as long. After MaxStoreFailures,
// which is about six minutes, it fails like any other: the error may be the
// handler's own, of another store, or never pass.
const (
	MaxStoreFailures = 10
	storePause       = 2 * time.Second
	maxStorePause    = time.Minute
)

var storeBackoff = Exponential(storePause, maxStorePause)

// Decide says how a run with this outcome ends. It is the only place that
// turns what handlers return into moves.
func Decide(r Run, o Outcome, p Policy) End {
	e := End{ID: r.ID, Run: r.Run, Keep: p.Keep, Result: o.Result, Ties: r.Ties}
	fail := func() {
		f := NewFailure(r.Used+1, r.Run, o.Message, o.Stack)
		f.Worker, f.By, f.Started = r.Worker, r.By, r.Started
		f.Store = o.Kind == StoreFailed
		e.Failure, e.Burn = f.Body(), !f.Store
	}
	if o.Kind == StoreFailed && r.StoreFailures >= MaxStoreFailures {
		o.Kind = Failed
	}
	if o.Kind == Throttled && r.Throttles >= MaxThrottles {
		o.Kind, o.Message = Failed, fmt.Sprintf("throttled %d times in a row: %s", r.Throttles+1, throttledBy(&o))
	}
	switch o.Kind {
	case Succeeded:
		e.To, e.Then = Done, o.Then
	case Failed:
		fail()
		if r.Used+1 >= r.MaxAttempts {
			e.To = Dead
			e.Reason = plural(r.MaxAttempts, "its only attempt failed", fmt.Sprintf("all %d attempts failed", r.MaxAttempts))
			break
		}
		e.To = Waiting
		if e.Delay = o.Delay; !o.Timed {
			e.Delay = p.Backoff(FailedAttempt{Attempt: r.Used + 1, Err: o.Err, Job: r.Job})
		}
	case GaveUp:
		fail()
		e.To = Dead
		e.Reason = "the handler gave up"
	case Snoozed:
		e.To = Waiting
		e.Delay = o.Delay
		e.Snooze = true
		e.Reason = clip(o.Message, maxMessage)
	case Throttled:
		e.To = Waiting
		e.Delay = o.Delay
		e.Throttle = true
		e.Reason = clip(throttledBy(&o), maxMessage)
	case Released:
		e.To = Waiting
	case Undecoded:
		e.To = Suspended
		e.Wait, e.Reason = Parked, clip(o.Message, maxMessage)
	case CancelSeen:
		e.To = Cancelled
		e.Reason = "cancelled while running"
	case StoreFailed:
		fail()
		e.To = Waiting
		e.Delay = storeBackoff(FailedAttempt{Attempt: r.StoreFailures + 1})
	case OutOfTime:
		fail()
		e.To = Dead
		e.Reason = "its deadline passed"
	default:
		panic(fmt.Sprintf("job: outcome %d", o.Kind))
	}
	return e
}

// throttledBy says by what a run was throttled, as far as it said.
func throttledBy(o *Outcome) string {
	text := "throttled"
	if o.Scope != nil {
		text += " by " + *o.Scope
	}
	if o.Message != "" {
		text += ": " + o.Message
	}
	return text
}

const (
	// MaxLost is how many runs may end with their process before the job is
	// taken for the cause and dies.
	MaxLost = 5
	// SuspectLost is how many such runs make a job a suspect, which runs alone in
	// its process so that others do not die with it.
	SuspectLost = 2
	// MaxDeferred is how often a suspect is given back because it could not run
	// alone. After that it runs beside others: it must not starve, nor hold up the
	// fleet.
	MaxDeferred = 3
)

// Suspect reports whether the job may be what ends the processes it runs in.
func (j *Job) Suspect() bool { return j.Lost >= SuspectLost }

// Alone reports whether it is to run alone in its process.
func (j *Job) Alone() bool { return j.Suspect() && j.Deferred < MaxDeferred }

// Verdict is a store's answer to one End.
type Verdict uint8

// The verdicts.
const (
	Applied Verdict = iota + 1 // the move is committed
	Stale                      // another run owns the job, or it has ended: nothing changed
	Locked                     // somebody's open transaction holds the job: nothing changed, send it again
	Already                    // to an End with Again: the worker's own end of this run was committed before
)

func (v Verdict) String() string {
	switch v {
	case Applied:
		return "applied"
	case Stale:
		return "stale"
	case Locked:
		return "held"
	case Already:
		return "already applied"
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}
