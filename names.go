package pawl

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/histogram"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/supervise"
)

// What a user of Pawl has to name is named here, so that packages job and store
// need importing only by those who write a store. internal/archtest looks.
type (
	// ID names a job. It is a UUIDv7 made by the caller, so that a send whose
	// answer was lost can be repeated under the same id.
	ID = job.ID
	// State is where a job stands.
	State = job.State
	// JobRecord is a job as the store holds it, live or archived.
	JobRecord = job.Job
	// Draft is a job that is complete and checked and not yet accepted, as
	// Hooks.Enqueue sees it.
	Draft = job.Draft
	// Receipt says what became of a job that was handed in.
	Receipt = job.Receipt
	// Failure is one attempt that did not succeed.
	Failure = job.Failure
	// Failures are the newest failures of a job, read when asked for.
	Failures = job.Failures
	// Why is what keeps a job from running; its String is the sentence.
	Why = job.Why
	// WhyGroup is jobs that the same thing keeps from running.
	WhyGroup = job.WhyGroup
	// WhyCode tells those things apart.
	WhyCode = job.WhyCode
	// Wait is what a suspended job waits for.
	Wait = job.Wait
	// Ties say what a job has beside its own row.
	Ties = job.Ties
	// LogLine is one line that a handler logged.
	LogLine = job.LogLine
	// QueueSettings are what code declares and operators set for one queue.
	QueueSettings = job.QueueSettings
	// CoolDown is the time in which a queue gives nothing out because it was throttled.
	CoolDown = job.CoolDown
	// BackoffSettings are how long failed jobs of a queue wait, as data.
	BackoffSettings = job.BackoffSettings
	// LimitSettings are what code declares and operators set for one limit.
	LimitSettings = job.LimitSettings
	// TopicState is how a topic stands.
	TopicState = store.TopicState
	// TopicSettings are what code declares and operators set for a topic, or a pattern.
	TopicSettings = stream.TopicSettings
	// ScheduleSettings are what code declares and operators set for one schedule.
	ScheduleSettings = job.ScheduleSettings
	// CatchUp says what becomes of due times that nobody was there for.
	CatchUp = job.CatchUp
	// PauseScope says what a pause stops.
	PauseScope = job.PauseScope
	// Pause is what is paused, since when, by whom and why.
	Pause = job.Pause
	// Route sends kinds to a queue: an exact kind, a prefix ("mail.*") or a glob.
	Route = job.Route
	// Progress is how far a job says that it is.
	Progress = job.Progress
	// Verdict is what became of a run's end, or of what it said.
	Verdict = job.Verdict
	// WorkerID numbers one boot of one process.
	WorkerID = job.WorkerID
	// OutcomeKind is what one run of a job came to.
	OutcomeKind = job.OutcomeKind

	// Opener makes a store ready for use: sqlite.File, postgres.Pool and others.
	Opener = store.Opener
	// Migrate says what opening may do to the schema.
	Migrate = store.Migrate
	// Change says what an operator's call did to a job.
	Change = store.Change
	// Operation is what Bulk began: how it stands, and how far it is.
	Operation = store.Operation
	// OperationState is how an operation stands.
	OperationState = store.OperationState
	// OperationCounts are what became of the jobs that an operation has looked at.
	OperationCounts = store.OperationCounts
	// Verb is what an operation does to its jobs.
	Verb = store.Verb
	// VerbName tells verbs apart.
	VerbName = store.VerbName
	// Filter chooses jobs; zero fields match everything.
	Filter = store.Filter
	// Page is a part of a list.
	Page = store.Page
	// Bookmark is where the next page of a list goes on.
	Bookmark = store.Bookmark
	// Order is how a list is sorted.
	Order = store.Order
	// Part is a part of a list by id.
	Part = store.Part
	// Listed is one page of jobs.
	Listed = store.Listed
	// Counted is how many jobs there are, up to a bound.
	Counted = store.Counted
	// Unserved is jobs of a queue that wait and nobody takes, for one reason.
	Unserved = store.Unserved
	// QueueCount is how many jobs of a queue are in a state.
	QueueCount = store.QueueCount
	// QueueState is how a queue stands.
	QueueState = store.QueueState
	// AuditEntry is one operator action.
	AuditEntry = store.AuditEntry
	// AuditFilter chooses operator actions; zero fields match everything.
	AuditFilter = store.AuditFilter
	// AuditPage is a part of the list of operator actions.
	AuditPage = store.AuditPage
	// AuditPosition is a place in the list of operator actions.
	AuditPosition = store.AuditPosition
	// AuditList is one page of operator actions, the newest first.
	AuditList = store.AuditList
	// Conflict is an owner that declares what another one holds.
	Conflict = store.Conflict
	// VersionInfo is one version of an owner's code.
	VersionInfo = store.VersionInfo
	// WorkerInfo is a process as the registry shows it.
	WorkerInfo = store.WorkerInfo
	// CheckReport is what a check found.
	CheckReport = store.CheckReport
	// Fault is one broken rule that a check found.
	Fault = store.Fault
	// Repair is what became of a fault.
	Repair = store.Repair
	// RepairAnswer says what became of a fault.
	RepairAnswer = store.RepairAnswer
	// Rule is one sentence that a check holds a store against.
	Rule = store.Rule
	// UpkeepReport is what one round of upkeep did.
	UpkeepReport = store.UpkeepReport
	// UpkeepDid is one thing that a round did, so often.
	UpkeepDid = store.UpkeepDid
	// JobMetrics is what jobs came to: counts, and histograms of their times.
	JobMetrics = metric.Jobs
	// FailureMetrics is what is known of failures that are alike.
	FailureMetrics = metric.Failures
	// FailedJob is a job that failed, and when.
	FailedJob = metric.FailedJob
	// LoadMetrics is what a process took.
	LoadMetrics = metric.Load
	// MetricCount is what is counted of jobs.
	MetricCount = metric.Count
	// Histogram counts durations; quantiles are read from it.
	Histogram = histogram.Histogram
	// ServiceStatus is what one loop of this process has done.
	ServiceStatus = supervise.Status
	// Rows are the answer to a query.
	Rows = store.Rows
)

// What became of the end of a run, or of what it said.
const (
	VerdictApplied = job.Applied // it is stored
	VerdictStale   = job.Stale   // the run is not its worker's own any more: nothing changed
	VerdictLocked  = job.Locked  // an open transaction holds the job: nothing changed, send it again
	VerdictAlready = job.Already // to one that is sent again: it was stored before
)

// The states of a job. Done, dead, cancelled and skipped are final.
const (
	StateBlocked   = job.Blocked   // waits for edges of its flow
	StateWaiting   = job.Waiting   // ready, or scheduled when its due time is ahead
	StateRunning   = job.Running   // leased to a worker
	StateSuspended = job.Suspended // waits for something outside and holds no slot
	StateDone      = job.Done      // final: succeeded
	StateDead      = job.Dead      // final: failed for good
	StateCancelled = job.Cancelled // final: asked to stop before it was done
	StateSkipped   = job.Skipped   // final: its flow can no longer reach it
)

// How an operation of Bulk stands.
const (
	OperationOpen      = store.OperationOpen      // there may be more to do
	OperationDone      = store.OperationDone      // it has seen all that matched
	OperationCancelled = store.OperationCancelled // by CancelOperation
	OperationFailed    = store.OperationFailed    // it was tried too often; Operation.Reason says why
)

// What operations do, as their Verb and the audit log have it.
const (
	VerbCancel   = store.VerbCancel
	VerbRetry    = store.VerbRetry
	VerbDelete   = store.VerbDelete
	VerbRequeue  = store.VerbRequeue
	VerbPriority = store.VerbPriority
	VerbRunNow   = store.VerbRunNow
)

// What a pause stops.
const (
	PauseQueue = job.PauseQueue // claims from a queue
	PauseKind  = job.PauseKind  // claims of a kind
	PauseAll   = job.PauseAll   // all claims
)

// What can become of a fault.
const (
	RepairDone       = store.RepairDone       // mended, and in the audit log
	RepairNotNeeded  = store.RepairNotNeeded  // it was none any more when its row was locked
	RepairBusy       = store.RepairBusy       // somebody's open transaction holds it: ask again
	RepairImpossible = store.RepairImpossible // nobody can tell what it should be
)

// What is none in QueueSettings, LimitSettings and TopicSettings, as opposed to not set.
const (
	NoTotal = job.NoTotal // as many as the processes have workers
	NoAging = job.NoAging // strict priority
	NoLimit = job.NoLimit // neither so many at once nor so many in a time; of a topic: kept for ever, or all of them
)

// What a suspended job waits for.
const (
	WaitNone   = job.NoWait // it is not suspended
	WaitParked = job.Parked // its arguments cannot be read; Retry tries again
)

// What a job has beside its own row.
const (
	TieUnique = job.TieUnique // a unique key
	TieLogs   = job.TieLogs   // lines in its log
	TieSteps  = job.TieSteps  // results of steps
	TieNode   = job.TieNode   // a node of a flow, which it is
	TieKey    = job.TieKey    // a key by which jobs are ordered or bounded
	TieSignal = job.TieSignal // signals
	TieOutput = job.TieOutput // output of its attempts
	TieEvents = job.TieEvents // events of its moves
)

// What keeps a job from running, in the order in which a claim would meet it.
const (
	WhyRunning      = job.WhyRunning      // nothing: it runs
	WhyUnheard      = job.WhyUnheard      // it runs on a worker whose beats have stopped
	WhyEnded        = job.WhyEnded        // it is done, dead or cancelled
	WhyFlow         = job.WhyFlow         // jobs of its flow come first
	WhySuspended    = job.WhySuspended    // it waits for something outside
	WhyParked       = job.WhyParked       // its arguments cannot be read by this build
	WhyScheduled    = job.WhyScheduled    // it is not due yet
	WhySnoozed      = job.WhySnoozed      // its handler put it off
	WhyThrottled    = job.WhyThrottled    // its handler was throttled, and waits for the limit that did
	WhyRetry        = job.WhyRetry        // it failed, and waits for its next attempt
	WhyFrozen       = job.WhyFrozen       // everything is paused
	WhyPaused       = job.WhyPaused       // its queue is paused
	WhyKindPaused   = job.WhyKindPaused   // its kind is paused
	WhyCooling      = job.WhyCooling      // its queue cools down
	WhyNoWorker     = job.WhyNoWorker     // nobody serves its queue
	WhyNoKind       = job.WhyNoKind       // nobody there knows its kind
	WhyNoVersion    = job.WhyNoVersion    // nobody there knows its version
	WhyNoCapability = job.WhyNoCapability // nobody there has what it needs
	WhyUnreadable   = job.WhyUnreadable   // what it needs cannot be read
	WhyGate         = job.WhyGate         // it waits behind a gate of which nobody knows the limit
	WhyLimit        = job.WhyLimit        // its limit, or its key, is at its bound
	WhyOrder        = job.WhyOrder        // another job of its key comes first
	WhyRate         = job.WhyRate         // the tokens of its limit are used up
	WhyTotal        = job.WhyTotal        // the total of its queue is used up
	WhySlot         = job.WhySlot         // it is ready, and waits for a free slot
)

// The orders of a list.
const (
	ByID     = store.ByID     // the newest id first
	ByDue    = store.ByDue    // the earliest due time first: waiting jobs of one queue
	ByFinish = store.ByFinish // the last end first: dead and cancelled jobs
	ByWorker = store.ByWorker // worker by worker: running jobs
	ByGate   = store.ByGate   // gate by gate: only as a part of a list that is split
)

// The parts of a list by id in which too many jobs would have to be sorted.
const (
	PartWhole   = store.PartWhole   // everything, by id: the list is not split
	PartWaiting = store.PartWaiting // waiting jobs of the queue, by due
	PartGated   = store.PartGated   // waiting jobs of the queue behind gates, by gate
	PartRunning = store.PartRunning // running jobs, by worker
	PartRest    = store.PartRest    // everything else, by id
)

// What a run came to.
const (
	OutcomeSucceeded = job.Succeeded   // the handler returned nil
	OutcomeFailed    = job.Failed      // it returned an error, panicked or took too long
	OutcomeDead      = job.GaveUp      // it returned Dead
	OutcomeSnoozed   = job.Snoozed     // it returned Snooze or SnoozeFor
	OutcomeReleased  = job.Released    // it did not get to finish: a stop, a lost lease
	OutcomeParked    = job.Undecoded   // its arguments cannot be read by this build
	OutcomeCancelled = job.CancelSeen  // it returned because it was asked to cancel
	OutcomeDeadline  = job.OutOfTime   // the job's deadline passed while it ran
	OutcomeStore     = job.StoreFailed // the store was down, full or locked
	OutcomeThrottled = job.Throttled   // it returned Throttled
)

// What is counted of jobs.
const (
	MetricBegan     = metric.Began     // handlers that started
	MetricDone      = metric.Done      // jobs that succeeded
	MetricFailed    = metric.Failed    // attempts that failed and are tried again
	MetricDead      = metric.Dead      // jobs that failed for good
	MetricCancelled = metric.Cancelled // jobs that were stopped
	MetricSnoozed   = metric.Snoozed   // runs that asked for later
	MetricThrottled = metric.Throttled // runs that let their queue or scope rest
	MetricReleased  = metric.Released  // runs that went back unfinished
	MetricLost      = metric.Lost      // runs whose lease was lost
	MetricParked    = metric.Parked    // runs whose arguments could not be read
)

// What opening does when the schema is older than the build.
const (
	MigrateAuto  = store.MigrateAuto  // bring it up to date, under a lock
	MigrateCheck = store.MigrateCheck // refuse with ErrSchemaOlder
	MigrateOff   = store.MigrateOff   // do not look
)

// The answers to Cancel, Retry and Delete.
const (
	NotFound  = store.NotFound  // no such job
	Changed   = store.Changed   // done
	Asked     = store.Asked     // it is running: its handler was asked to stop
	Ended     = store.Ended     // it has ended already; nothing changed
	Duplicate = store.Duplicate // retry: another job holds its unique key
	Active    = store.Active    // retry: it is running or ready already; nothing changed
	Busy      = store.Busy      // an open transaction, mostly one of its own handler's, holds it; nothing changed
	Same      = store.Same      // requeue, set priority: it is there already; nothing changed
)

// NewID makes an id for WithID. Ids of one process ascend.
func NewID() ID { return job.NewID() }

// ParseID reads an id in its usual form of 36 characters.
func ParseID(text string) (ID, error) { return job.ParseID(text) }
