package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// queues adds the routes of queues.
func (a *api) queues() {
	route(a, operation{
		method: http.MethodGet, path: "/queues", id: "list-queues", tag: "queues", role: auth.Viewer,
		summary: "List queues by name: how each stands, and its settings",
	}, a.listQueues)
	route(a, operation{
		method: http.MethodGet, path: "/queues/{name}", id: "get-queue", tag: "queues", role: auth.Viewer,
		summary: "Read how a queue stands, and its settings",
	}, a.getQueue)
	route(a, operation{
		method: http.MethodGet, path: "/queues/{name}/settings", id: "get-queue-settings", tag: "queues", role: auth.Viewer,
		summary: "Read what holds for a queue, or is said for a pattern, also where there is none yet",
	}, a.getQueueSettings)
	route(a, operation{
		method: http.MethodPatch, path: "/queues/{name}/settings", id: "set-queue", tag: "queues", role: auth.Operator,
		summary: "Put settings over what code declares, for a queue or a pattern such as mail.*",
	}, a.setQueue)
	route(a, operation{
		method: http.MethodDelete, path: "/queues/{name}/settings", id: "reset-queue", tag: "queues", role: auth.Operator,
		summary: "Take back what was set, or some fields of it",
	}, a.resetQueue)
	for _, v := range []struct {
		name, summary string
		do            func(pawl.QueueHandle, context.Context) error
	}{
		{"pause", "Stop claims from a queue; its running jobs go on", pawl.QueueHandle.Pause},
		{"resume", "Allow claims from a queue again", pawl.QueueHandle.Resume},
		{"reset-cool-down", "End a queue's cool-down, and forget how often it was throttled", pawl.QueueHandle.ResetCoolDown},
	} {
		id := v.name + "-queue"
		if v.name == "reset-cool-down" {
			id = "reset-queue-cool-down"
		}
		route(a, operation{
			method: http.MethodPost, path: "/queues/{name}/" + v.name, id: id, tag: "queues", role: auth.Operator, summary: v.summary,
		}, func(ctx context.Context, in *NamePath) (*body[Queue], error) {
			if err := v.do(a.e.Queue(in.Name), ctx); err != nil {
				return nil, err
			}
			return a.queue(ctx, in.Name)
		})
	}
	route(a, operation{
		method: http.MethodGet, path: "/counts", id: "list-counts", tag: "queues", role: auth.Viewer,
		summary: "Count the jobs of each queue in each state, up to a bound",
	}, a.listCounts)
}

// NamePath names a queue, kind, schedule or limit.
type NamePath struct {
	Name string `path:"name" maxLength:"128" doc:"a / in it is written %2F"`
}

// Queue is how a queue stands.
type Queue struct {
	Name        string         `json:"name"`
	Ready       JobCount       `json:"ready" doc:"jobs that wait and are due"`
	OldestReady time.Time      `json:"oldest_ready,omitzero" doc:"due time of the one that has been ready for longest"`
	Scheduled   JobCount       `json:"scheduled" doc:"jobs that wait and are due later"`
	Retries     JobCount       `json:"retries" doc:"those of both that have failed before"`
	Running     JobCount       `json:"running"`
	Slots       int            `json:"slots" doc:"of the live workers that serve it, together"`
	Total       int            `json:"total,omitempty" doc:"how many of its jobs run at once in the cluster; none: no bound"`
	Workers     int            `json:"workers" doc:"live ones that serve it"`
	Labels      []string       `json:"labels" nullable:"false" doc:"of the first of them"`
	Pause       *Pause         `json:"pause,omitempty" doc:"of the queue, or of everything"`
	CoolDown    *CoolDown      `json:"cool_down,omitempty" doc:"while it gives nothing out, because a handler was throttled"`
	Settings    EffectiveQueue `json:"settings"`
}

// CoolDown is a time in which a queue gives nothing out.
type CoolDown struct {
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
	Throttles int       `json:"throttles" doc:"cool-downs that followed each other"`
}

// QueueList is one page of queues.
type QueueList struct {
	Queues []Queue `json:"queues" nullable:"false"`
	Next   string  `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
	More   bool    `json:"more,omitempty" doc:"there are more queues than the 1,000 that a list goes through"`
}

func countOf(c pawl.Counted) JobCount { return JobCount{c.Jobs, c.More} }

func queueOf(q *pawl.QueueState, s *pawl.Settings) Queue {
	holds := s.Queue(q.Name)
	w := Queue{
		Name: q.Name, Ready: countOf(q.Ready), OldestReady: q.Oldest, Scheduled: countOf(q.Scheduled), Retries: countOf(q.Retries),
		Running: countOf(q.Running), Slots: q.Slots, Total: q.Total, Workers: q.Workers, Labels: append([]string{}, q.Labels...),
		Settings: effectiveQueueOf(&holds),
	}
	if q.Pause != nil {
		p := pauseOf(q.Pause)
		w.Pause = &p
	}
	if c := q.CoolDown; c != nil {
		w.CoolDown = &CoolDown{c.Since, c.Until, c.Throttles}
	}
	return w
}

// listQueues lists what the engine tells of by itself, and those that only have settings.
func (a *api) listQueues(ctx context.Context, in *Paging) (*body[QueueList], error) {
	states, err := a.e.Queues(ctx)
	if err != nil {
		return nil, err
	}
	s, err := a.e.Settings(ctx)
	if err != nil {
		return nil, err
	}
	told := map[string]bool{}
	for i := range states {
		told[states[i].Name] = true
	}
	var quiet []string
	for _, q := range s.Queues {
		if !told[q.Name] && !job.IsPattern(q.Name) && len(states)+len(quiet) < store.MaxQueues {
			quiet = append(quiet, q.Name)
		}
	}
	if len(quiet) > 0 {
		others, err := a.e.Queues(ctx, quiet...)
		if err != nil {
			return nil, err
		}
		states = append(states, others...)
	}
	page, next, err := pageOf(in, states, func(q *pawl.QueueState) string { return q.Name })
	if err != nil {
		return nil, err
	}
	queues := wireOf(page, func(q *pawl.QueueState) Queue { return queueOf(q, &s) })
	return answer(QueueList{queues, next, len(states) >= store.MaxQueues}), nil
}

func (a *api) getQueue(ctx context.Context, in *NamePath) (*body[Queue], error) {
	q, err := a.queue(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	w := &q.Body
	said := w.Settings.Owner != "" && w.Settings.Pattern == "" || len(w.Settings.Overridden) > 0
	paused := w.Pause != nil && w.Pause.Scope == store.PauseQueue.String()
	if !said && !paused && w.CoolDown == nil && w.Workers == 0 && w.Ready.Jobs+w.Scheduled.Jobs+w.Running.Jobs == 0 {
		return nil, job.NotFound("queue", in.Name)
	}
	return q, nil
}

// queue is how a queue stands, whether anybody knows it or not.
func (a *api) queue(ctx context.Context, name string) (*body[Queue], error) {
	if err := job.CheckName("queue", name); err != nil {
		return nil, err
	}
	states, err := a.e.Queues(ctx, name)
	if err != nil {
		return nil, err
	}
	s, err := a.e.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if len(states) != 1 {
		return nil, errors.New("the store tells of no queue that was named")
	}
	return answer(queueOf(&states[0], &s)), nil
}

// QueueCounts is how many jobs of a queue there are.
type QueueCounts struct {
	Queue  string              `json:"queue"`
	States map[string]JobCount `json:"states" doc:"by state, where there are any"`
}

// CountList is one page of them.
type CountList struct {
	Counts []QueueCounts `json:"counts" nullable:"false"`
	Next   string        `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

func (a *api) listCounts(ctx context.Context, in *Paging) (*body[CountList], error) {
	counts, err := a.e.Counts(ctx)
	if err != nil {
		return nil, err
	}
	var all []QueueCounts
	for _, c := range counts {
		if n := len(all); n == 0 || all[n-1].Queue != c.Queue {
			all = append(all, QueueCounts{c.Queue, map[string]JobCount{}})
		}
		all[len(all)-1].States[c.State.String()] = countOf(c.Counted)
	}
	page, next, err := pageOf(in, all, func(c *QueueCounts) string { return c.Queue })
	if err != nil {
		return nil, err
	}
	return answer(CountList{append([]QueueCounts{}, page...), next}), nil
}
