package runner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// SetQueues changes what this process serves, while it runs or before.
//
//   - A queue that is new is looked at at once, if it has no total: otherwise it has
//     no slots before a beat gives it a portion.
//   - What is changed of one that stays holds at once for jobs that begin or end from
//     now on. With fewer slots, what runs beyond them goes on.
//   - One that is missing is not claimed from any more. Its running jobs go on; what
//     was claimed and has not started goes back.
//
// The store is told with the next beat, which comes at once.
func (r *Runner) SetQueues(queues []QueueConfig) error {
	if err := checkQueues(queues); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setQueues(queues)
	if now := r.servesNow(); !slices.Equal(now.Queues, r.serves.Queues) || !slices.Equal(now.Totals, r.serves.Totals) {
		r.serves = now
		r.wakeBeat()
	}
	r.signal(r.claimWanted)
	return nil
}

// setQueues is SetQueues without telling anybody. The caller holds mu.
func (r *Runner) setQueues(queues []QueueConfig) {
	now := time.Now()
	wanted := make(map[string]bool, len(queues))
	for i := range queues {
		wanted[queues[i].Name] = true
	}
	for _, q := range r.queues {
		if !wanted[q.name] && !q.removed {
			r.remove(q)
		}
	}
	for i := range queues {
		q := r.named[queues[i].Name]
		if q == nil {
			q = &queue{name: queues[i].Name, by: job.By{Label: r.config.Label, Version: r.config.Version}, removed: true}
			r.removed++
			r.named[q.name] = q
			r.queues = append(r.queues, q)
		}
		if q.removed {
			q.removed, q.look = false, now
			q.unseen.hint(now)
			r.removed--
		}
		q.set(queues[i])
	}
	r.hint()
	r.startReady() // there may be more slots
}

// remove gives back what a queue has not started, and leaves it no slots. It is
// forgotten when its runs are over: when it comes back before, they count. The
// caller holds mu.
func (r *Runner) remove(q *queue) {
	q.removed = true
	r.removed++
	q.setting.Total = 0
	q.slots = 0
	for _, t := range r.takeUnstarted(func(t *Task) bool { return t.queue == q }) {
		r.giveBack(t, 0)
	}
}

// forgetRemoved drops the removed queues that nothing is left of. Only the claim
// loop calls it, between claims: an answer that it waits for may be of one of them.
// The caller holds mu.
func (r *Runner) forgetRemoved() {
	if r.removed == 0 || r.claims.repeat != nil {
		return
	}
	r.queues = slices.DeleteFunc(r.queues, func(q *queue) bool {
		over := q.removed && q.running == 0 && q.first.len()+q.ready.len() == 0
		if over {
			r.removed--
			delete(r.named, q.name)
		}
		return over
	})
	if r.claims.turn >= len(r.queues) {
		r.claims.turn = 0
	}
	r.hint()
}

// hint makes the places of hints those of the queues. The caller holds mu.
func (r *Runner) hint() {
	if r.hints == nil {
		return // Run subscribes
	}
	r.hints.SetQueues(r.queueNames()...)
}

// queueNames lists all queues, the removed ones as well. The caller holds mu.
func (r *Runner) queueNames() []string {
	names := make([]string, len(r.queues))
	for i, q := range r.queues {
		names[i] = q.name
	}
	return names
}

// servesNow is what the store is to know of the queues. The caller holds mu.
func (r *Runner) servesNow() *store.Serves {
	s := &store.Serves{Queues: []string{}, Totals: []store.Total{}}
	for _, q := range r.queues {
		if q.removed {
			continue
		}
		if !q.setting.Found {
			s.Queues, s.Slots = append(s.Queues, q.name), append(s.Slots, q.setting.Workers)
		}
		if q.setting.Total > 0 {
			s.Totals = append(s.Totals, store.Total{
				Queue: q.name, Total: q.setting.Total, Workers: q.setting.Workers, Weight: q.setting.weight(),
			})
		}
	}
	for _, p := range r.config.Patterns {
		s.Queues, s.Slots = append(s.Queues, p.Name), append(s.Slots, p.Workers)
	}
	return s
}

// weight is as the store is told: a weight of 1 is not written down, so that what is
// the same for builds that know of none stays the same.
func (c *QueueConfig) weight() int {
	if c.Weight <= 1 {
		return 0
	}
	return c.Weight
}

// Holds reports whether this process holds jobs of a queue.
func (r *Runner) Holds(queue string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.named[queue]
	return q != nil && q.running+q.first.len()+q.ready.len() > 0
}

// checkQueues reports every fault at once.
func checkQueues(queues []QueueConfig) error {
	var faults []error
	names := make(map[string]bool, len(queues))
	for _, q := range queues {
		faults = append(faults, job.CheckName("queue", q.Name))
		if names[q.Name] {
			faults = append(faults, job.Invalid("queue", q.Name, "is given twice"))
		}
		names[q.Name] = true
		if q.Workers < 1 {
			faults = append(faults, job.Invalid(fmt.Sprintf("workers of queue %s", q.Name), q.Workers, "must be 1 or more"))
		}
		if q.Total < 0 {
			faults = append(faults, job.Invalid(fmt.Sprintf("total of queue %s", q.Name), q.Total, "must be 0 (no limit) or more"))
		}
		if q.Weight < 0 || q.Weight > job.MaxWeight {
			faults = append(faults, job.Invalid(fmt.Sprintf("weight of queue %s", q.Name), q.Weight, fmt.Sprintf("must be 0 (1) or 1..%d", job.MaxWeight)))
		}
		if q.Aging < 0 {
			faults = append(faults, job.Invalid(fmt.Sprintf("aging of queue %s", q.Name), q.Aging, "must be 0 (strict priority) or more"))
		}
	}
	return errors.Join(faults...)
}
