package runner

import (
	"time"

	"github.com/pawlwork/pawl/job"
)

// Stats is what a runner has done since New and holds now.
type Stats struct {
	Looks   uint64 // claims sent
	Claimed uint64 // jobs they returned
	Began   uint64 // handlers started
	// HandedOver are jobs that began in the commit that accepted them, without a claim.
	HandedOver uint64

	Finished map[job.OutcomeKind]uint64 // ends the store applied, by outcome
	InTx     uint64                     // runs finished in their handler's transaction
	Panics   uint64                     // also handlers that ended their goroutine
	Refused  uint64                     // ends of runs that no longer owned their job: changed nothing (P2)
	Unclear  uint64                     // ends whose repeat found the run over, and it is not known which try or transaction ended it
	Unkept   uint64                     // ends the store would not take in any form; ReportRuns gave the jobs back

	LeasesLost uint64 // runs whose lease was lost while they were held
	Registered uint64 // times the worker registered
	Released   uint64 // jobs that went back without having started
	Returned   uint64 // jobs leased to this worker that it did not hold, given back by ReportRuns
	Alone      uint64 // suspects that ran alone
	Deferred   uint64 // times a suspect went back because it could not

	Running int // handlers under way
	Ready   int // claimed and not started
	Ending  int // ended and not yet answered for by the store
	Stuck   []Stuck

	Worker   job.WorkerID // 0 while not registered
	Healthy  bool         // registered, and the lease is fresh
	LastBeat time.Time    // when the last successful beat was sent
}

// Stuck is a handler that ignores its cancelled context. Its slot stays taken.
type Stuck struct {
	ID    job.ID
	Run   int64
	Kind  string
	Queue string
	Since time.Time // when its context was found cancelled
	Cause error
}

// counters is what the runner has counted. Guarded by Runner.mu, which is held
// wherever it counts: a lock of their own would be one more for each job.
type counters struct {
	Stats
	byOutcome [job.Throttled + 1]uint64
}

// copy is without what is not counted.
func (c *counters) copy() Stats {
	s := c.Stats
	s.Finished = make(map[job.OutcomeKind]uint64)
	for kind, n := range c.byOutcome {
		if n > 0 {
			s.Finished[job.OutcomeKind(kind)] = n
		}
	}
	return s
}

// Stats returns a consistent copy.
func (r *Runner) Stats() Stats {
	registered, lease := r.member.Registered(), r.member.Lease()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats.copy()
	s.Registered, s.Worker, s.Healthy, s.LastBeat = registered, lease.Worker, lease.Healthy, lease.Beaten
	s.Running, s.Ending = r.tasks.count(placeRunning)+len(r.abandoned), r.tasks.ends
	s.Ready = r.tasks.count(placeFirst, placeReady, placeSuspect, placeMarking)
	for t := range r.handlers() {
		if t.stuck {
			s.Stuck = append(s.Stuck, Stuck{
				ID: t.Job.ID, Run: t.Job.Run, Kind: t.Job.Kind, Queue: t.Job.Queue,
				Since: t.cancelled, Cause: t.cause(),
			})
		}
	}
	return s
}

// Idle reports whether this process holds nothing: no handler runs, nothing
// claimed waits to start, every end is answered for.
func (r *Runner) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.empty()
}
