package runner

import (
	"time"

	"github.com/pawlwork/pawl/job"
)

// gates is what the runner knows of limits. Guarded by Runner.mu.
type gates struct {
	rules *job.GateRules // nil: there are none
	// opened are the gates of runs that have ended since the last claim: it begins
	// there, because nobody else may tell that they have room.
	opened []int64
}

// maxOpened bounds what is told to a claim. Gates that are left out are looked at a
// moment later.
const maxOpened = 4096

// SetGates makes claims go by other limits.
func (r *Runner) SetGates(rules *job.GateRules) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rules == nil && r.gates.rules == nil {
		return
	}
	r.gates.rules = rules
	for _, q := range r.queues {
		q.lookAgain() // what was closed may be open
	}
	r.signal(r.claimWanted)
}

// openGate notes that a run has ended which came through a gate: jobs of every queue
// may wait behind it. The caller holds mu.
func (r *Runner) openGate(t *Task, now time.Time) {
	gate := t.Job.Gate()
	if gate == 0 {
		return
	}
	if len(r.gates.opened) < maxOpened {
		r.gates.opened = append(r.gates.opened, gate)
	}
	for _, q := range r.queues {
		if q == t.queue || r.gates.rules.Touches(q.name) {
			q.lookBy(now)
		}
	}
}

// takeOpened hands them to a claim. The caller holds mu.
func (r *Runner) takeOpened() []int64 {
	opened := r.gates.opened
	r.gates.opened = nil
	return opened
}
