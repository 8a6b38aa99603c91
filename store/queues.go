package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// QueueReader is an optional interface of a store that tells how queues stand.
type QueueReader interface {
	// Queues tells how queues stand, by name: those named, MaxQueues at most, or
	// without names the first MaxQueues that have waiting or running jobs, that a
	// live worker serves, or that are paused or cool down. What it reads is bounded: jobs are
	// counted as far as QueueCap.
	Queues(ctx context.Context, names []string) ([]QueueState, error)
}

// Bounds of what is told about the workers of queues.
const (
	MaxServing = 10_000 // live workers that one answer reads
	MaxLabels  = 100    // labels of workers that are named for one queue
)

// QueueState is how a queue stands.
type QueueState struct {
	Name      string
	Ready     Counted       // jobs that wait and are due
	Oldest    time.Time     // due time of the one that has been ready for longest, of those behind gates among as many as were counted; zero without any
	Scheduled Counted       // jobs that wait and are due later
	Retries   Counted       // those of both that have failed before, among as many as were counted
	Running   Counted       // more means that all queues together came to the bound
	Slots     int           // of the live workers that serve it, together
	Total     int           // the lowest that one of them has; 0 means that none has one
	Workers   int           // how many of them there are
	Labels    []string      // of the first of them, MaxLabels at most
	Pause     *Pause        // of the queue, or of everything; nil while it is not paused
	CoolDown  *job.CoolDown // nil while none is running
}

// Known reports whether anybody serves the queue, or jobs are in it.
func (q *QueueState) Known() bool {
	return q.Workers > 0 || q.Ready.Jobs+q.Scheduled.Jobs+q.Running.Jobs > 0
}

// QueueFacts is what a store reads about queues, beside what waits in each.
type QueueFacts struct {
	Waiting []string       // queues that have waiting jobs; only where none is named
	Workers []Worker       // the live ones: labels, queues, slots and totals
	Running map[string]int // runs by queue, as far as MaxCounted altogether
	Pauses  []Pause
	Cooling []job.CoolDown // those that are running
}

// States puts together how queues stand but for what waits in them. Without names
// it is about all that the facts tell of.
func (f *QueueFacts) States(names []string) []QueueState {
	if len(names) == 0 {
		names = f.names()
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = FirstQueues(slices.Compact(names))
	states := make([]QueueState, len(names))
	at := make(map[string]*QueueState, len(names))
	all := 0
	for _, n := range f.Running {
		all += n
	}
	for i, name := range names {
		states[i] = QueueState{Name: name, Running: Bounded(f.Running[name], MaxCounted)}
		states[i].Running.More = all > MaxCounted
		at[name] = &states[i]
	}
	for i := range f.Pauses {
		switch p := &f.Pauses[i]; p.Scope {
		case PauseQueue:
			if q := at[p.Name]; q != nil {
				q.Pause = p
			}
		case PauseAll:
			for n := range states {
				states[n].Pause = cmp.Or(states[n].Pause, p)
			}
		}
	}
	for i := range f.Cooling {
		if q := at[f.Cooling[i].Queue]; q != nil {
			q.CoolDown = &f.Cooling[i]
		}
	}
	for i := range f.Workers {
		w := &f.Workers[i]
		for n, name := range w.Queues {
			if job.IsPattern(name) {
				f.serveAll(states, w, n)
			} else if q := at[name]; q != nil {
				q.serve(w, n)
			}
		}
	}
	return states
}

// serveAll adds a worker to the queues that match the nth of its own, and that it
// neither names nor matches before.
func (f *QueueFacts) serveAll(states []QueueState, w *Worker, n int) {
	for i := range states {
		q := &states[i]
		if job.Matches(w.Queues[n], q.Name) && !job.MatchesAny(w.Queues[:n], q.Name) && !slices.Contains(w.Queues, q.Name) {
			q.serve(w, n)
		}
	}
}

// names is every queue that the facts tell of, in any order.
func (f *QueueFacts) names() []string {
	names := f.Waiting
	for name := range f.Running {
		names = append(names, name)
	}
	for _, p := range f.Pauses {
		if p.Scope == PauseQueue {
			names = append(names, p.Name)
		}
	}
	for _, c := range f.Cooling {
		names = append(names, c.Queue)
	}
	for _, w := range f.Workers {
		names = append(names, slices.DeleteFunc(slices.Clone(w.Queues), job.IsPattern)...)
	}
	return names
}

// serve adds a worker, of which the queue is the nth.
func (q *QueueState) serve(w *Worker, n int) {
	q.Workers++
	if len(q.Labels) < MaxLabels {
		q.Labels = append(q.Labels, w.Label)
	}
	if n < len(w.Slots) {
		q.Slots += w.Slots[n]
	}
	for _, t := range w.Totals {
		if t.Queue == q.Name && (q.Total == 0 || t.Total < q.Total) {
			q.Total = t.Total
		}
	}
}

// QueueWaits is what waits in a queue, ready and scheduled, and how many of those
// have failed before.
type QueueWaits struct {
	Ready, ReadyRetries         int
	Scheduled, ScheduledRetries int
	Oldest                      time.Time // of those that are ready; zero without any
}

// Waits adds what waits. Of the plain jobs, one more than the cap at most was counted
// of each of ready and scheduled; of those behind gates, which no index has by due,
// one more than the cap of both together: of either there may be more then.
func (q *QueueState) Waits(plain, gated QueueWaits, cap int) {
	more := gated.Ready+gated.Scheduled > cap
	q.Ready, q.Scheduled = Bounded(plain.Ready+gated.Ready, cap), Bounded(plain.Scheduled+gated.Scheduled, cap)
	q.Ready.More, q.Scheduled.More = q.Ready.More || more, q.Scheduled.More || more
	retries := plain.ReadyRetries + plain.ScheduledRetries + gated.ReadyRetries + gated.ScheduledRetries
	q.Retries = Counted{Jobs: min(retries, cap), More: q.Ready.More || q.Scheduled.More}
	q.Oldest = plain.Oldest
	if !gated.Oldest.IsZero() && (q.Oldest.IsZero() || gated.Oldest.Before(q.Oldest)) {
		q.Oldest = gated.Oldest
	}
}

// CheckQueues refuses names that no queue can have, and too many of them.
func CheckQueues(names []string) error {
	if len(names) > MaxQueues {
		return job.Invalid("names", len(names), fmt.Sprintf("must be at most %d", MaxQueues))
	}
	for _, name := range names {
		if err := job.CheckName("queue", name); err != nil {
			return err
		}
	}
	return nil
}
