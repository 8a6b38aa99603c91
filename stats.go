package pawl

import (
	"slices"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
)

// Stats is what this process has done since Run began, and holds now.
type Stats struct {
	Looks   uint64 // claims sent
	Claimed uint64 // jobs they returned
	Began   uint64 // handlers started
	// HandedOver are jobs that began in the commit that accepted them, without a claim.
	HandedOver uint64

	Finished  map[OutcomeKind]uint64 // ends the store applied, by outcome
	InTx      uint64                 // runs finished in their handler's transaction
	Panics    uint64                 // also handlers that ended their goroutine
	Refused   uint64                 // ends of runs that no longer owned their job: changed nothing (P2)
	Unclear   uint64                 // ends whose first answer was lost and whose repeat found the run over
	Swallowed uint64                 // handlers that went on after their job was given back (Acquire)
	Unkept    uint64                 // ends the store would not take in any form; the jobs went back

	LeasesLost uint64 // runs whose lease was lost while they were held
	Registered uint64 // times the worker registered
	Released   uint64 // jobs that went back without having started
	Returned   uint64 // jobs leased to this worker that it did not hold, given back
	Alone      uint64 // suspects that ran alone
	Deferred   uint64 // times a suspect went back because it could not

	Running int // handlers under way
	Ready   int // claimed and not started
	Ending  int // ended and not yet answered for by the store
	Stuck   []Stuck

	// Unserved is what waits and nobody takes, by queue, kind and reason, as the last
	// look found it: once a minute, by the first of the live processes. The others have
	// none, so that those of all processes together are the cluster's.
	Unserved []Unserved

	Worker   WorkerID  // 0 while not registered
	Healthy  bool      // registered, and the lease is fresh
	LastBeat time.Time // when the last successful beat was sent
}

// Stuck is a handler that ignores its cancelled context. Its slot stays taken.
type Stuck struct {
	ID    ID
	Run   int64
	Kind  string
	Queue string
	Since time.Time // when its context was found cancelled
	Cause error
}

// Stats counts what this process has done; zero before Run.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	r := e.running
	e.mu.Unlock()
	if r == nil {
		return Stats{}
	}
	s := statsOf(r.Stats())
	if list := e.unserved.Load(); list != nil {
		s.Unserved = slices.Clone(*list)
	}
	s.Swallowed = e.swallowed.Load()
	return s
}

// statsOf shows the runner's counters. A test looks for one that was forgotten.
func statsOf(s runner.Stats) Stats {
	out := Stats{
		Looks: s.Looks, Claimed: s.Claimed, Began: s.Began, HandedOver: s.HandedOver,
		Finished: s.Finished, InTx: s.InTx, Panics: s.Panics, Refused: s.Refused, Unclear: s.Unclear, Unkept: s.Unkept,
		LeasesLost: s.LeasesLost, Registered: s.Registered, Released: s.Released, Returned: s.Returned, Alone: s.Alone, Deferred: s.Deferred,
		Running: s.Running, Ready: s.Ready, Ending: s.Ending,
		Worker: s.Worker, Healthy: s.Healthy, LastBeat: s.LastBeat,
	}
	for _, stuck := range s.Stuck {
		out.Stuck = append(out.Stuck, Stuck(stuck))
	}
	return out
}
