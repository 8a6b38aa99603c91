package store

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Workers is the registry of processes and their leases. A lease belongs to a
// worker, not to a job: one heartbeat row keeps all of its runs.
type Workers interface {
	// Register enters one boot of one process and numbers it.
	Register(ctx context.Context, w Worker) (job.WorkerID, error)
	// Beat renews the worker's lease. It is ErrWorkerLost when the worker was
	// declared lost or is not registered: then none of its runs is its own.
	Beat(ctx context.Context, b Beat) (BeatReply, error)
	// Cancels lists the worker's runs that were asked to cancel.
	Cancels(ctx context.Context, w job.WorkerID) ([]RunRef, error)
	// ReportRuns reports the runs a worker holds. Jobs leased to it that it does not
	// hold go back free of charge; the runs that are not its own are returned.
	// No claim of the worker may be under way.
	ReportRuns(ctx context.Context, w job.WorkerID, held []RunRef) (ReportReply, error)
	// Alone asks whether a run may be the one of its namespace for which a worker
	// empties itself, so that it runs alone there. Who was told so stays it until
	// the run is over, however it ends; asking again changes nothing.
	Alone(ctx context.Context, w job.WorkerID, run RunRef) (bool, error)
	// Deregister removes a worker. Jobs still leased to it become rescuable.
	Deregister(ctx context.Context, w job.WorkerID) error
}

// Worker describes a process.
type Worker struct {
	Label   string // {prefix}-worker-{version}-{id}
	Host    string
	Process int
	// Owner and Version say whose code it runs; Declares is what that declares.
	// Both are empty for one that declares nothing.
	Owner, Version string
	Declares       []Declaration
	// Machine and Start let a process of the same machine see that this one is
	// dead (internal/boot); empty when that cannot be told.
	Machine, Start string
	// Remote says that it is no process of Pawl's: somebody beats for it, and it does no
	// upkeep. Others lead.
	Remote bool
	// Queues are those it serves: names, or patterns such as "*" and "mail.*"
	// (job.Matches).
	Queues []string
	// Slots is how many jobs of each of its queues it runs at most, in their order.
	Slots []int
	// Totals are those of the queues whose running jobs the cluster bounds.
	Totals    []Total
	Offer     job.Offer
	LostAfter time.Duration // without a beat
}

// Total is one worker's view of a queue whose running jobs the cluster bounds.
type Total struct {
	Queue   string `json:"queue"`
	Total   int    `json:"total"`   // in the cluster
	Workers int    `json:"workers"` // at most so many of them in this process
	// Weight is that of its portion beside others' (job.Split); 0, as builds write
	// that know of none, is 1.
	Weight int `json:"weight,omitempty"`
}

// Beat is one heartbeat.
type Beat struct {
	Worker job.WorkerID
	Begun  []RunRef // runs whose handlers have begun since they were claimed
	// Splits says that the worker has totals and wants to know who shares them.
	Splits bool
	// Version is that of the registry by which it splits them now, from the
	// answer to an earlier beat; 0 before the first, which changes nothing. A
	// worker shares from the first beat on that names one which every worker that
	// shares has stored, or a later one: who never comes so far takes nothing from
	// others. The answer to that beat is still of before. What has been stored stays: a
	// beat that arrives late takes no newer version back.
	Version int64
	// Serves replaces the queues and totals of the worker; nil leaves them as they
	// are. It is done first: the answer is of after it. Where the worker shares and
	// its totals change, the registry has a new version, as when one leaves.
	Serves *Serves
}

// Serves is which queues a worker serves, with its slots and totals.
type Serves struct {
	Queues []string
	Slots  []int
	Totals []Total
}

// BeatReply is the answer to a heartbeat.
type BeatReply struct {
	Now     time.Time
	Cancels []RunRef
	// Leader says that the worker is the first of those that have neither left nor
	// been lost. Two may be told so for a moment: it saves work, and proves nothing.
	Leader bool
	// Revision is that of the settings (SettingsReply), never 0.
	Revision int64
	// Version is that of the registry, which changes whenever a worker begins to
	// share totals, shares others, leaves or is lost, and never comes again. Zero
	// without Splits.
	Version int64
	// Settled says that every other live worker that shares has stored this
	// version. Only then may the caller's portions grow: who has not stored it may
	// still use more.
	Settled bool
	// Crews tells who shares the total of each queue of the worker that has one. It may
	// be the answer to an earlier beat, too: nobody changes it.
	Crews map[string]Crew
}

// Crew is who shares the total of a queue: its live workers with a total that
// have begun to share, in id order.
type Crew struct {
	Total   int   // the lowest that one of them has
	Held    int   // runs of the queue that those still hold who shared it and left or were lost
	Workers []int // how many jobs each of them runs at most
	Weights []int // of each of them; nil where all are 1
	Index   int   // which of them asked; -1 while it does not share
}

// Shares says whether the worker that asked is one of those who share.
func (c Crew) Shares() bool { return c.Index >= 0 }

// Free is how much of the total there is to share.
func (c Crew) Free() int { return max(c.Total-c.Held, 0) }

// ReportReply is the answer to ReportRuns.
type ReportReply struct {
	Returned int      // jobs that went back to waiting
	Stale    []RunRef // runs in the report that the worker does not own
}

// WorkerInfo is a worker as the registry shows it.
type WorkerInfo struct {
	ID      job.WorkerID
	Worker  Worker
	Started time.Time
	Beat    time.Time
	Lost    bool
	Shares  bool // it has begun to share its totals
	Running int
	// Unreadable names the fields that are empty because what is stored of them
	// cannot be read, such as "offer".
	Unreadable []string
}
