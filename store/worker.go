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
	Beat(ctx context.Context, b Beat) (Beaten, error)
	// Cancels lists the worker's runs that were asked to cancel.
	Cancels(ctx context.Context, w job.WorkerID) ([]RunRef, error)
	// Hold reports the runs a worker holds. Jobs leased to it that it does not
	// hold go back free of charge; the runs that are not its own are returned.
	// No claim of the worker may be under way.
	Hold(ctx context.Context, w job.WorkerID, held []RunRef) (Held, error)
	// Alone asks whether a run may be the one of its namespace for which a worker
	// empties itself, so that it runs alone there. Who was told so stays it until
	// the run is over, however it ends; asking again changes nothing.
	Alone(ctx context.Context, w job.WorkerID, run RunRef) (bool, error)
	// Deregister removes a worker. Jobs still leased to it become rescuable.
	Deregister(ctx context.Context, w job.WorkerID) error
}

// Worker describes a process.
type Worker struct {
	Label     string // {prefix}-worker-{version}-{id}
	Host      string
	Process   int
	Queues    []string
	Offer     job.Offer
	LostAfter time.Duration // without a beat
}

// Beat is one heartbeat.
type Beat struct {
	Worker job.WorkerID
	Begun  []RunRef // runs whose handlers have begun since they were claimed
}

// Beaten is the answer to a heartbeat.
type Beaten struct {
	Now     time.Time
	Cancels []RunRef
	// Places tells, for each queue the worker serves, its place among the live
	// workers that serve it, in id order.
	Places map[string]Place
}

// Place is one worker's place among those that serve a queue.
type Place struct{ Index, Count int }

// Held is the answer to Hold.
type Held struct {
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
	Running int
	// Unreadable names the fields that are empty because what is stored of them
	// cannot be read, such as "offer".
	Unreadable []string
}
