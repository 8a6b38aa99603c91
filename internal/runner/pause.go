package runner

import (
	"maps"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Pauses is what must not begin for the time being.
type Pauses struct {
	All    bool
	Queues []string
	Kinds  []string
}

// SetPauses takes kinds out of the offer of claims, and gives back what is claimed
// of all that is paused and has not started. Running jobs go on. Which queues may be
// claimed from is the store's to say: each is looked at once, also one that cools down,
// since an operator may have reset that.
func (r *Runner) SetPauses(p Pauses) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setOffer(p.Kinds)
	r.pauses = p
	paused := func(t *Task) bool {
		return p.All || slices.Contains(p.Queues, t.Job.Queue) || slices.Contains(p.Kinds, t.Job.Kind)
	}
	for _, t := range r.takeUnstarted(paused) {
		r.giveBack(t, 0)
	}
	for _, q := range r.queues {
		q.coolUntil = time.Time{}
		q.lookAgain() // what was resumed may have jobs
	}
	r.signal(r.claimWanted)
}

// Kinds lists the kinds that this process knows.
func (r *Runner) Kinds() []string { return slices.Sorted(maps.Keys(r.kinds)) }

// setOffer is what claims offer from now on. Those that are under way have the old
// one. The caller holds mu.
func (r *Runner) setOffer(paused []string) {
	offer := job.Offer{Kinds: make(map[string]int, len(r.kinds)), Capabilities: r.config.Capabilities}
	for name, k := range r.kinds {
		if !slices.Contains(paused, name) {
			offer.Kinds[name] = k.Version
		}
	}
	r.offer = offer
}

// offers reports whether a claim has anything to ask for. The caller holds mu.
func (r *Runner) offers() bool { return len(r.offer.Kinds) > 0 || len(r.kinds) == 0 }

// lookAgain asks for a look at once: more may be ready than the last one could see.
func (q *queue) lookAgain() {
	q.look = q.looked
	q.unseen.hint(q.looked)
}
