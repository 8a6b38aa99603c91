package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// MetricQuery asks what jobs came to, in a time.
type MetricQuery struct {
	From, To time.Time     // by the store's clock; zero means the last hour [To: now, From: an hour before]
	Queue    string        // or a pattern, such as "mail.*"; empty means all
	Kind     string        // or a pattern
	Step     time.Duration // what one point is of, whole minutes; 0 means one point for all
	// Total adds up all queues and kinds that match into one series without names. That of
	// everything costs the same however many queues there are.
	Total bool
}

// Metrics are what the jobs of all processes came to. A process hands over what it
// measured once a minute, so the last minute or two may be missing.
type Metrics struct {
	Series []MetricSeries // by queue and kind
	// Unreadable is how many rows were left out: another build wrote them, or they are damaged.
	Unreadable int
}

// MetricSeries is what jobs of one queue and kind came to. Both are "(all other)" for
// those beyond the bound of names that a process counts apart.
type MetricSeries struct {
	Queue, Kind string
	Points      []MetricPoint // by start; where nothing happened there is none
}

// MetricPoint is one step of a series. Counts and histograms of several points can be
// merged; quantiles cannot be averaged.
type MetricPoint struct {
	Start time.Time
	Span  time.Duration // a step; an hour where minutes were merged into hours and the step is shorter
	JobMetrics
}

// Total adds up all points of all series.
func (m *Metrics) Total() JobMetrics {
	var total JobMetrics
	for i := range m.Series {
		for j := range m.Series[i].Points {
			total.Merge(&m.Series[i].Points[j].JobMetrics)
		}
	}
	return total
}

// Total adds up all points.
func (s *MetricSeries) Total() JobMetrics { return (&Metrics{Series: []MetricSeries{*s}}).Total() }

// Metrics tells what jobs came to: counts by outcome, and histograms of queue time,
// run time and total time, of every process (J20).
func (e *Engine) Metrics(ctx context.Context, q MetricQuery) (Metrics, error) {
	class := metric.OfJobs
	if q.Total && q.Queue == "" && q.Kind == "" {
		class = metric.OfAll
	}
	reply, err := e.readMetrics(ctx, store.MetricQuery{Class: class, From: q.From, To: q.To, Name: q.Queue, Kind: q.Kind, Step: q.Step})
	if err != nil {
		return Metrics{}, err
	}
	m := Metrics{Unreadable: reply.Unreadable}
	for _, p := range reply.Points {
		if n := len(m.Series); n == 0 || m.Series[n-1].Queue != p.Name || m.Series[n-1].Kind != p.Kind {
			m.Series = append(m.Series, MetricSeries{Queue: p.Name, Kind: p.Kind})
		}
		s := &m.Series[len(m.Series)-1]
		s.Points = append(s.Points, MetricPoint{Start: p.Start, Span: p.Span, JobMetrics: *p.Value.(*metric.Jobs)})
	}
	if q.Total {
		m.Series = totalOf(m.Series)
	}
	return m, nil
}

// FailureQuery asks which failures are alike, in a time.
type FailureQuery struct {
	From, To    time.Time // as in MetricQuery
	Kind        string    // or a pattern; empty means all
	Fingerprint string    // of a Failure; empty means all
	Limit       int       // [100] of those with the most failures
}

// FailureGroup is failures that are alike: of one kind, with one fingerprint. Both are
// "(all other)" for those beyond the bound of what a process counts apart.
type FailureGroup struct {
	Fingerprint, Kind string
	FailureMetrics
}

// FailureGroups tells which failures are alike, those with the most first: how many,
// how many jobs died of it, the first and the last, and some versions and keys. It
// reads what processes have counted, and looks at no job.
func (e *Engine) FailureGroups(ctx context.Context, q FailureQuery) ([]FailureGroup, error) {
	reply, err := e.readMetrics(ctx, store.MetricQuery{Class: metric.OfFailures, From: q.From, To: q.To, Name: q.Fingerprint, Kind: q.Kind})
	if err != nil {
		return nil, err
	}
	list := make([]FailureGroup, len(reply.Points))
	for i, p := range reply.Points {
		list[i] = FailureGroup{p.Name, p.Kind, *p.Value.(*metric.Failures)}
	}
	slices.SortStableFunc(list, func(a, b FailureGroup) int { return cmp.Compare(b.Failed, a.Failed) })
	return list[:min(len(list), cmp.Or(max(q.Limit, 0), 100))], nil
}

// LoadQuery asks what processes took, in a time.
type LoadQuery struct {
	From, To time.Time     // as in MetricQuery
	Worker   string        // its label, or a pattern; empty means all
	Step     time.Duration // as in MetricQuery
}

// WorkerLoad is what one process took: CPU, memory, goroutines, and how its store
// answered.
type WorkerLoad struct {
	Worker string // its label
	Start  time.Time
	LoadMetrics
}

// WorkerLoads tells what processes took, by worker and start. A process that works
// tells every minute, an idle one every ten. Namespaces that share a process each tell
// of all of it.
func (e *Engine) WorkerLoads(ctx context.Context, q LoadQuery) ([]WorkerLoad, error) {
	reply, err := e.readMetrics(ctx, store.MetricQuery{Class: metric.OfWorkers, From: q.From, To: q.To, Name: q.Worker, Step: q.Step})
	if err != nil {
		return nil, err
	}
	list := make([]WorkerLoad, len(reply.Points))
	for i, p := range reply.Points {
		list[i] = WorkerLoad{p.Name, p.Start, *p.Value.(*metric.Load)}
	}
	return list, nil
}

// readMetrics asks the store, by default for the last hour.
func (e *Engine) readMetrics(ctx context.Context, q store.MetricQuery) (store.MetricReply, error) {
	if err := e.usable(ctx); err != nil {
		return store.MetricReply{}, err
	}
	m, ok := e.store.(store.Metrics)
	if !ok {
		return store.MetricReply{}, fmt.Errorf("metrics: %w", errors.ErrUnsupported)
	}
	if q.To.IsZero() {
		now, err := e.store.Now(ctx)
		if err != nil {
			return store.MetricReply{}, err
		}
		q.To = now
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-time.Hour)
	}
	return m.ReadMetrics(ctx, q)
}
