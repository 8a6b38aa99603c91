package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/supervise"
)

// workers adds the routes of workers, and of what runs in this process.
func (a *api) workers() {
	route(a, operation{
		method: http.MethodGet, path: "/workers", id: "list-workers", tag: "workers", role: auth.Viewer,
		summary: "List the registered processes",
	}, a.listWorkers)
	route(a, operation{
		method: http.MethodGet, path: "/workers/loads", id: "list-worker-loads", tag: "workers", role: auth.Viewer,
		summary: "Read what processes took: CPU, memory, goroutines, and how their store answered",
	}, a.listLoads)
	route(a, operation{
		method: http.MethodGet, path: "/services", id: "list-services", tag: "workers", role: auth.Viewer,
		summary: "List what every loop of the server's own process has done",
	}, a.listServices)
}

// Worker is a process that runs jobs.
type Worker struct {
	ID           int64          `json:"id"`
	Label        string         `json:"label"`
	Host         string         `json:"host,omitempty"`
	Process      int            `json:"process,omitempty" doc:"its number on the host"`
	Owner        string         `json:"owner,omitempty" doc:"whose code it runs"`
	Version      string         `json:"version,omitempty" doc:"of that code"`
	Started      time.Time      `json:"started"`
	Beat         time.Time      `json:"beat" doc:"its last heartbeat"`
	LostAfter    string         `json:"lost_after" doc:"without a beat"`
	Lost         bool           `json:"lost,omitempty"`
	Running      int            `json:"running" doc:"jobs"`
	Queues       []WorkerQueue  `json:"queues" nullable:"false"`
	Kinds        map[string]int `json:"kinds" doc:"that it runs, with the newest version of arguments that it reads"`
	Capabilities []string       `json:"capabilities,omitempty"`
	Unreadable   []string       `json:"unreadable,omitempty" doc:"fields that are stored but cannot be read"`
}

// WorkerQueue is a queue that a worker serves.
type WorkerQueue struct {
	Name  string `json:"name" doc:"or a pattern"`
	Slots int    `json:"slots" doc:"how many jobs of it the worker runs at most"`
	Total int    `json:"total,omitempty" doc:"how many run in the cluster"`
}

func workerOf(w *pawl.WorkerInfo) Worker {
	out := Worker{
		ID: int64(w.ID), Label: w.Worker.Label, Host: w.Worker.Host, Process: w.Worker.Process, Owner: w.Worker.Owner, Version: w.Worker.Version,
		Started: w.Started, Beat: w.Beat, LostAfter: w.Worker.LostAfter.String(), Lost: w.Lost, Running: w.Running,
		Queues: make([]WorkerQueue, len(w.Worker.Queues)), Kinds: w.Worker.Offer.Kinds, Capabilities: w.Worker.Offer.Capabilities,
		Unreadable: w.Unreadable,
	}
	if out.Kinds == nil {
		out.Kinds = map[string]int{}
	}
	for i, name := range w.Worker.Queues {
		q := WorkerQueue{Name: name}
		if i < len(w.Worker.Slots) {
			q.Slots = w.Worker.Slots[i]
		}
		for _, t := range w.Worker.Totals {
			if t.Queue == name {
				q.Total = t.Total
			}
		}
		out.Queues[i] = q
	}
	return out
}

// WorkerList is one page of workers.
type WorkerList struct {
	Workers []Worker `json:"workers" nullable:"false"`
	Next    string   `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

func (a *api) listWorkers(ctx context.Context, in *Paging) (*body[WorkerList], error) {
	all, err := a.e.Workers(ctx)
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(in, all, func(w *pawl.WorkerInfo) string { return fmt.Sprintf("%020d", w.ID) })
	if err != nil {
		return nil, err
	}
	return answer(WorkerList{wireOf(page, workerOf), next}), nil
}

type loadsInput struct {
	From   time.Time `query:"from" doc:"an hour before to without it"`
	To     time.Time `query:"to" doc:"now without it"`
	Worker string    `query:"worker" maxLength:"255" doc:"its label, or a pattern"`
	Step   string    `query:"step" maxLength:"32" doc:"what one entry is of, whole minutes such as 5m; all of the time without it"`
	Paging
}

// WorkerLoad is what one process took in a time.
type WorkerLoad struct {
	Worker     string    `json:"worker" doc:"its label"`
	Start      time.Time `json:"start"`
	Span       string    `json:"span" doc:"how much time it is of"`
	CPU        string    `json:"cpu" doc:"on all processors together"`
	Memory     uint64    `json:"memory" doc:"bytes, at most"`
	Goroutines uint64    `json:"goroutines" doc:"at most"`
	Calls      uint64    `json:"calls" doc:"of the store: beats, claims and ends"`
	CallMean   string    `json:"call_mean" doc:"how long one took"`
	CallP99    string    `json:"call_p99" doc:"what 99 of 100 did not exceed"`
}

func loadOf(l *pawl.WorkerLoad) WorkerLoad {
	return WorkerLoad{
		Worker: l.Worker, Start: l.Start, Span: l.Span.String(), CPU: l.CPU.String(), Memory: l.Memory, Goroutines: l.Goroutines,
		Calls: l.Calls.Count(), CallMean: l.Calls.Mean().String(), CallP99: l.Calls.Quantile(0.99).String(),
	}
}

// WorkerLoadList is one page of loads.
type WorkerLoadList struct {
	Loads []WorkerLoad `json:"loads" nullable:"false" doc:"by worker and start"`
	Next  string       `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

func (a *api) listLoads(ctx context.Context, in *loadsInput) (*body[WorkerLoadList], error) {
	step, err := readDuration("step", in.Step, 0)
	if err != nil {
		return nil, err
	}
	all, err := a.e.WorkerLoads(ctx, pawl.LoadQuery{From: in.From, To: in.To, Worker: in.Worker, Step: step})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(&in.Paging, all, func(l *pawl.WorkerLoad) string {
		return l.Worker + "\x00" + l.Start.UTC().Format("2006-01-02T15:04:05.000000000")
	})
	if err != nil {
		return nil, err
	}
	return answer(WorkerLoadList{wireOf(page, loadOf), next}), nil
}

// Service is what a loop of this process has done.
type Service struct {
	Name         string    `json:"name" doc:"with its groups: keeper/rescue"`
	Kind         string    `json:"kind"`
	State        string    `json:"state"`
	Cycles       uint64    `json:"cycles" doc:"runs begun"`
	Skipped      uint64    `json:"skipped,omitempty" doc:"cycles that were another process's"`
	Errors       uint64    `json:"errors,omitempty" doc:"failed runs, panics included"`
	Panics       uint64    `json:"panics,omitempty"`
	Restarts     uint64    `json:"restarts,omitempty"`
	LastStart    time.Time `json:"last_start,omitzero"`
	LastDuration string    `json:"last_duration,omitempty" doc:"of the last run that ended"`
	LastSuccess  time.Time `json:"last_success,omitzero"`
	LastError    string    `json:"last_error,omitempty"`
	LastErrorAt  time.Time `json:"last_error_at,omitzero"`
	Next         time.Time `json:"next,omitzero" doc:"when it runs next, where that is known"`
	Shards       []Shard   `json:"shards,omitempty"`
}

// Shard is what one shard of a tick has done.
type Shard struct {
	Name         string    `json:"name"`
	Errors       uint64    `json:"errors,omitempty"`
	FailedInARow int       `json:"failed_in_a_row,omitempty"`
	SkipsLeft    int       `json:"skips_left,omitempty" doc:"cycles that it will still be skipped for"`
	LastSuccess  time.Time `json:"last_success,omitzero"`
	LastError    string    `json:"last_error,omitempty"`
}

func serviceOf(s *pawl.ServiceStatus) Service {
	w := Service{
		Name: s.Name, Kind: string(s.Kind), State: string(s.State), Cycles: s.Cycles, Skipped: s.Skipped, Errors: s.Errors, Panics: s.Panics,
		Restarts: s.Restarts, LastStart: s.LastStart, LastDuration: settingTime(s.LastDuration), LastSuccess: s.LastSuccess,
		LastError: s.LastError, LastErrorAt: s.LastErrorAt, Next: s.Next,
	}
	if len(s.Shards) > 0 {
		w.Shards = wireOf(s.Shards, func(s *supervise.ShardStatus) Shard {
			return Shard{s.Name, s.Errors, s.FailedInARow, s.SkipsLeft, s.LastSuccess, s.LastError}
		})
	}
	return w
}

// ServiceList is all services; empty while the server's engine does not run.
type ServiceList struct {
	Services []Service `json:"services" nullable:"false"`
}

func (a *api) listServices(ctx context.Context, _ *struct{}) (*body[ServiceList], error) {
	return answer(ServiceList{wireOf(a.e.Services(ctx), serviceOf)}), nil
}
