package webui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// workersPages are the processes that run jobs; the second has one of them open.
var (
	workersPages = []page{
		{
			path: "/workers", name: "workers", title: "Workers", load: loadWorkers, regions: workerRegions,
			nav: nav{label: "Workers", icon: "n-work", order: 50, tab: true, key: "w", count: func(l *look) badge {
				lost := len(l.Workers) - l.Live()
				if lost > 0 {
					return badge{Text: strconv.Itoa(lost), Title: fmt.Sprintf("%d lost", lost), Icon: "unserved", State: "dead"}
				}
				return badge{Text: strconv.Itoa(l.Live())}
			}},
		},
		{path: "/workers/{id}", name: "worker", title: "Workers", under: "workers", load: loadWorkers, regions: workerRegions},
	}
	workerActions []action

	workerRegions = []region{
		{name: "workers-lead", every: 2 * time.Second, fails: "Workers"},
		{name: "workers-table", every: 2 * time.Second, fails: "Workers"},
	}
)

// Bounds of what is read.
const (
	runsShown = 100             // of the worker that is open
	loadSpan  = 5 * time.Minute // of CPU, memory and the store's times
	lateBeat  = 10 * time.Second
)

// workersData is all workers, and what is known of the open one.
type workersData struct {
	Rows                      []workerRow
	Live, Lost, Running, Slot int
	Versions                  []versionRow
	Verdict                   string // which version fails more often
	Compared                  string // whose runs that is of; empty: nothing has ended
	Open                      *workerRow
	Gone                      string // the id that was asked for and is not there
}

// workerRow is one process.
type workerRow struct {
	pawl.WorkerInfo
	Slots    int
	State    string
	Load     *pawl.WorkerLoad // nil: none is known yet
	Leads    bool
	Here     bool // it is this process
	Link     string
	IsOpen   bool
	Runs     []pawl.JobRecord // of the open one
	MoreRuns bool
	Serves   []served
	Kinds    []kindOffer
	Loads    []pawl.WorkerLoad // by the minute
	Stuck    []pawl.Stuck
}

// served is a queue of a worker.
type served struct {
	Queue               string
	Running, Slots, All int // of the worker, and of all workers together
	Total               int
}

// kindOffer is a kind that a worker runs, up to a version of its arguments.
type kindOffer struct {
	Kind    string
	Version int
}

func loadWorkers(v *view) (any, error) {
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	loads, err := cached(v, "loads", 10*time.Second, func(ctx context.Context) ([]pawl.WorkerLoad, error) {
		return v.app.e.WorkerLoads(ctx, pawl.LoadQuery{From: v.Now.Add(-loadSpan), To: v.Now})
	})
	if err != nil {
		return nil, err
	}
	d := &workersData{}
	leader := leaderOf(l.Workers)
	here := v.app.e.Stats().Worker
	open := v.params["id"]
	for i := range l.Workers {
		w := &l.Workers[i]
		r := workerRow{WorkerInfo: *w, State: workerState(w, v.Now), Leads: w.ID == leader && leader != 0, Here: w.ID == here && here != 0}
		for _, n := range w.Worker.Slots {
			r.Slots += n
		}
		if k := slices.IndexFunc(loads, func(l pawl.WorkerLoad) bool { return l.Worker == w.Worker.Label }); k >= 0 {
			r.Load = &loads[k]
		}
		r.IsOpen = open == fmt.Sprint(w.ID)
		r.Link = v.app.link("/workers/{}", w.ID)
		if r.IsOpen {
			r.Link = v.app.link("/workers")
		}
		if w.Lost {
			d.Lost++
		} else {
			d.Live++
			d.Slot += r.Slots
		}
		d.Running += w.Running
		d.Rows = append(d.Rows, r)
	}
	rank := map[string]int{"lost": 0, "late": 1, "live": 2}
	slices.SortStableFunc(d.Rows, func(a, b workerRow) int {
		return cmp.Or(rank[a.State]-rank[b.State], cmp.Compare(a.Worker.Version, b.Worker.Version), cmp.Compare(a.Worker.Host, b.Worker.Host),
			cmp.Compare(a.ID, b.ID))
	})
	for i := range d.Rows {
		if d.Rows[i].IsOpen {
			d.Open = &d.Rows[i]
			if err := v.open(d.Open, l); err != nil {
				return nil, err
			}
		}
	}
	if open != "" && d.Open == nil {
		d.Gone = open
	}
	return d, v.versions(d)
}

// leaderOf is who does what one process does for all: the first of those that live and are of Pawl's own.
func leaderOf(workers []pawl.WorkerInfo) (first pawl.WorkerID) {
	for i := range workers {
		if w := &workers[i]; !w.Lost && !w.Worker.Remote && (first == 0 || w.ID < first) {
			first = w.ID
		}
	}
	return first
}

// workerState is how a process stands: late where its last beat is long ago but not yet long enough.
func workerState(w *pawl.WorkerInfo, now time.Time) string {
	switch {
	case w.Lost:
		return "lost"
	case now.Sub(w.Beat) > max(lateBeat, w.Worker.LostAfter/2):
		return "late"
	}
	return "live"
}

// open reads what the open worker does now.
func (v *view) open(r *workerRow, l *look) error {
	runs, err := cached(v, fmt.Sprint("runs of ", r.ID), time.Second, func(ctx context.Context) (pawl.Listed, error) {
		return v.app.e.List(ctx, pawl.Filter{Worker: r.ID, States: []pawl.State{job.Running}}, pawl.Page{Limit: runsShown, Order: store.ByWorker})
	})
	if err != nil {
		return err
	}
	r.Runs, r.MoreRuns = runs.Jobs, runs.More
	if r.Here {
		r.Stuck = v.app.e.Stats().Stuck
	}
	on := map[string]int{}
	for i := range r.Runs {
		on[r.Runs[i].Queue]++
	}
	for i, name := range r.Worker.Queues {
		s := served{Queue: name, Running: on[name]}
		if i < len(r.Worker.Slots) {
			s.Slots = r.Worker.Slots[i]
		}
		for _, t := range r.Worker.Totals {
			if t.Queue == name {
				s.Total = t.Total
			}
		}
		for k := range l.Queues {
			if l.Queues[k].Name == name {
				s.All = l.Queues[k].Slots
			}
		}
		r.Serves = append(r.Serves, s)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Worker.Offer.Kinds)) {
		r.Kinds = append(r.Kinds, kindOffer{kind, r.Worker.Offer.Kinds[kind]})
	}
	label := r.Worker.Label
	r.Loads, err = cached(v, "loads of "+label, 20*time.Second, func(ctx context.Context) ([]pawl.WorkerLoad, error) {
		return v.app.e.WorkerLoads(ctx, pawl.LoadQuery{From: v.Now.Add(-time.Hour), To: v.Now, Worker: label, Step: time.Minute})
	})
	return err
}

// Name is how a worker is called.
func (r *workerRow) Name() string { return cmp.Or(r.Worker.Label, fmt.Sprintf("worker %d", r.ID)) }

// CPU is how many processors it used.
func (r *workerRow) CPU() string { return processors(r.Load) }

func processors(l *pawl.WorkerLoad) string {
	if l == nil || l.Span <= 0 {
		return ""
	}
	return percent(float64(l.CPU), float64(l.Span))
}

// Memory is what Go held.
func (r *workerRow) Memory() string {
	if r.Load == nil || r.Load.Memory == 0 {
		return ""
	}
	return bytesText(int(r.Load.Memory))
}

// Store is how long its store took to answer, but for the slowest of 20.
func (r *workerRow) Store() time.Duration {
	if r.Load == nil || r.Load.Calls.Count() == 0 {
		return 0
	}
	return r.Load.Calls.Quantile(0.95)
}

// series are points of its loads, for a spark.
func (r *workerRow) series(of func(*metric.Load) float64) []float64 {
	points := make([]float64, len(r.Loads))
	for i := range r.Loads {
		points[i] = of(&r.Loads[i].LoadMetrics)
	}
	return points
}

// CPUs, Memories and Stores are the last hour by the minute.
func (r *workerRow) CPUs() []float64 {
	return r.series(func(l *metric.Load) float64 { return l.CPU.Seconds() / max(1, l.Span.Seconds()) })
}

// Memories are of the last hour.
func (r *workerRow) Memories() []float64 {
	return r.series(func(l *metric.Load) float64 { return float64(l.Memory) })
}

// Stores are of the last hour.
func (r *workerRow) Stores() []float64 {
	return r.series(func(l *metric.Load) float64 { return l.Calls.Quantile(0.95).Seconds() })
}

// Beats is whether its last beat was a moment ago; only an older one is worth a time.
func (r *workerRow) Beats(now time.Time) bool { return now.Sub(r.Beat) < lateBeat }

// Element is the id of its row.
func (r *workerRow) Element() string { return fmt.Sprintf("w%d", r.ID) }

// Percent is how far a running job says it is; below 0 where it says nothing.
func (v *view) Percent(j *pawl.JobRecord) float64 {
	if j.Progress.Total <= 0 {
		return -1
	}
	return float64(j.Progress.Done) / float64(j.Progress.Total) * 100
}

// Share is what the worker has of all slots of a queue.
func (s *served) Share() string { return percent(float64(s.Slots), float64(s.All)) }
