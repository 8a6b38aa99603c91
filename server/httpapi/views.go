package httpapi

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Overview is how all queues stand, 1,000 at most. A change has only what changed.
type Overview struct {
	States []StateTotal `json:"states" nullable:"false" doc:"jobs of all queues, in each state where there are any"`
	Queues []QueueNow   `json:"queues" nullable:"false" doc:"by name"`
	Gone   []string     `json:"gone,omitempty" doc:"of a change: queues that have nothing any more"`
}

// StateTotal is how many jobs are in a state.
type StateTotal struct {
	State string `json:"state"`
	Jobs  int    `json:"jobs"`
	More  bool   `json:"more,omitempty" doc:"it came to a bound: there may be more"`
}

// QueueNow is how a queue stands.
type QueueNow struct {
	Name        string    `json:"name"`
	Ready       JobCount  `json:"ready" doc:"jobs that wait and are due"`
	OldestReady time.Time `json:"oldest_ready,omitzero" doc:"due time of the one that has been ready for longest"`
	Scheduled   JobCount  `json:"scheduled" doc:"jobs that wait and are due later"`
	Retries     JobCount  `json:"retries" doc:"of both, those that have failed before"`
	Running     JobCount  `json:"running"`
	Slots       int       `json:"slots" doc:"of the live workers that serve it, together"`
	Workers     int       `json:"workers" doc:"how many of them there are"`
	Total       int       `json:"total,omitempty" doc:"how many of its jobs may run in the cluster"`
	Paused      bool      `json:"paused,omitempty" doc:"it, or everything"`
	Cooling     time.Time `json:"cooling,omitzero" doc:"until when it cools down"`
}

func queueNowOf(q *pawl.QueueState) QueueNow {
	w := QueueNow{
		Name: q.Name, Ready: countOf(q.Ready), OldestReady: q.Oldest, Scheduled: countOf(q.Scheduled), Retries: countOf(q.Retries),
		Running: countOf(q.Running), Slots: q.Slots, Workers: q.Workers, Total: q.Total, Paused: q.Pause != nil,
	}
	if q.CoolDown != nil {
		w.Cooling = q.CoolDown.Until
	}
	return w
}

func (q *QueueNow) since(older view) view {
	if *q == *older.(*QueueNow) {
		return nil
	}
	return q
}

// JobNow is a job as it is watched: as in a list, without arguments, result and failures.
type JobNow Job

func (j *JobNow) since(older view) view {
	if reflect.DeepEqual(j, older) {
		return nil
	}
	return j
}

func (o *Overview) since(older view) view {
	was := older.(*Overview)
	change := &Overview{States: []StateTotal{}, Queues: []QueueNow{}}
	states := map[string]StateTotal{}
	for _, s := range was.States {
		states[s.State] = s
	}
	for _, s := range o.States {
		if states[s.State] != s {
			change.States = append(change.States, s)
		}
		delete(states, s.State)
	}
	for state := range states { // there are none any more
		change.States = append(change.States, StateTotal{State: state})
	}
	slices.SortFunc(change.States, func(a, b StateTotal) int { return cmp.Compare(a.State, b.State) })
	queues := make(map[string]*QueueNow, len(was.Queues))
	for i := range was.Queues {
		queues[was.Queues[i].Name] = &was.Queues[i]
	}
	for i := range o.Queues {
		q := &o.Queues[i]
		if before := queues[q.Name]; before == nil || *before != *q {
			change.Queues = append(change.Queues, *q)
		}
		delete(queues, q.Name)
	}
	for name := range queues {
		change.Gone = append(change.Gone, name)
	}
	slices.Sort(change.Gone)
	if len(change.States)+len(change.Queues)+len(change.Gone) == 0 {
		return nil
	}
	return change
}

// lookOverview reads how all queues stand: two calls, whoever watches.
func (a *api) lookOverview(ctx context.Context, subjects []string) (map[string]view, error) {
	queues, err := a.e.Queues(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := a.e.Counts(ctx)
	if err != nil {
		return nil, err
	}
	o := &Overview{States: []StateTotal{}, Queues: make([]QueueNow, len(queues))}
	for i := range queues {
		o.Queues[i] = queueNowOf(&queues[i])
	}
	for _, s := range job.States() {
		total := StateTotal{State: s.String()}
		for i := range counts {
			if counts[i].State == s {
				total.Jobs, total.More = total.Jobs+counts[i].Jobs, total.More || counts[i].More
			}
		}
		if total.Jobs > 0 {
			o.States = append(o.States, total)
		}
	}
	views := map[string]view{}
	for _, s := range subjects {
		views[s] = o
	}
	return views, nil
}

// lookQueues reads how queues stand, all in one call where they are not very many. One that has nothing stands so.
func (a *api) lookQueues(ctx context.Context, subjects []string) (map[string]view, error) {
	views := map[string]view{}
	for some := range slices.Chunk(subjects, store.MaxQueues) {
		names := make([]string, len(some))
		for i, s := range some {
			names[i] = strings.TrimPrefix(s, queueSubject)
		}
		queues, err := a.e.Queues(ctx, names...)
		if err != nil {
			return nil, err
		}
		for i := range queues {
			q := queueNowOf(&queues[i])
			views[queueSubject+q.Name] = &q
		}
	}
	return views, nil
}

// jobsAtOnce is how many jobs one statement reads.
const jobsAtOnce = 500

// lookJobs reads jobs, jobsAtOnce in one call.
func (a *api) lookJobs(ctx context.Context, subjects []string) (map[string]view, error) {
	views := map[string]view{}
	for some := range slices.Chunk(subjects, jobsAtOnce) {
		ids := make([]pawl.ID, len(some))
		for i, s := range some {
			var err error
			if ids[i], err = job.ParseID(strings.TrimPrefix(s, jobSubject)); err != nil {
				return nil, err
			}
		}
		jobs, err := a.e.Store().Get(ctx, ids)
		if err != nil {
			return nil, err
		}
		for i := range jobs {
			now := JobNow(jobOf(&jobs[i], false, true))
			views[jobSubject+now.ID] = &now
		}
	}
	return views, nil
}
