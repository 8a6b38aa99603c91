package webui

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl"
)

// queueFlow is what the jobs of a queue came to in a span.
type queueFlow struct {
	Points           []float64 // done a minute
	PerMinute        float64   // done, of the last minutes that are known
	Recent           uint64    // done in those
	RecentIn         time.Duration
	Ended            uint64 // runs that ended in the span
	Rate             string // done a minute, in words; empty for none
	FailedShare      float64
	Failed           string
	QueueP95, RunP95 time.Duration
	Kinds            map[string]*pawl.JobMetrics
	In               time.Duration // that all of this is of
	Known            bool
}

// recentTime is how far "a minute" looks back: a process hands over once a minute, so that less would jump.
const recentTime = 5 * time.Minute

// queueFlows reads them, of all queues in one statement; of many for the last hour only, and without lines.
func (v *view) queueFlows() (map[string]queueFlow, error) {
	s := v.span()
	step := max(s.To.Sub(s.From)/30, time.Minute).Truncate(time.Minute)
	to := s.To.Truncate(time.Minute).Add(time.Minute)
	from := to.Add(-s.To.Sub(s.From))
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	if series := kindsOfQueue * len(l.Queues); !affordable(s, series) || series*int(s.To.Sub(s.From)/step) > manyPoints {
		hour, s, err := v.hour()
		if err != nil {
			return nil, err
		}
		return v.hourFlows(hour, s)
	}
	return measured(v, "queue flows "+s.key(), 5*time.Second, func(ctx context.Context) (map[string]queueFlow, error) {
		m, err := v.app.e.Metrics(ctx, pawl.MetricQuery{From: from, To: to, Step: step})
		if err != nil {
			return nil, err
		}
		return flowsOf(&m, from, to, step), nil
	})
}

// hourFlow is what an hour's metrics came to, added up once.
type hourFlow struct {
	of    *pawl.Metrics
	flows map[string]queueFlow
}

// hourFlows adds up an hour that was read, unless that was done.
func (v *view) hourFlows(hour *pawl.Metrics, s span) (map[string]queueFlow, error) {
	read := func(context.Context) (hourFlow, error) {
		return hourFlow{hour, flowsOf(hour, s.From, s.To, s.Step)}, nil
	}
	f, err := measured(v, fmt.Sprintf("queue flows of %p", hour), mostMeasured, read)
	return f.flows, err
}

func flowsOf(m *pawl.Metrics, from, to time.Time, step time.Duration) map[string]queueFlow {
	type sums struct {
		total pawl.JobMetrics
		done  []uint64
		kinds map[string]*pawl.JobMetrics
	}
	all := map[string]*sums{}
	steps := int((to.Sub(from) + step - 1) / step)
	first, last := steps, -1 // steps in which anything was counted, of any queue
	for i := range m.Series {
		s := &m.Series[i]
		one := all[s.Queue]
		if one == nil {
			one = &sums{done: make([]uint64, steps), kinds: map[string]*pawl.JobMetrics{}}
			all[s.Queue] = one
		}
		if one.kinds[s.Kind] == nil {
			one.kinds[s.Kind] = &pawl.JobMetrics{}
		}
		for n := range s.Points {
			p := &s.Points[n]
			one.total.Merge(&p.JobMetrics)
			one.kinds[s.Kind].Merge(&p.JobMetrics)
			if at := int(p.Start.Sub(from) / step); at >= 0 && at < steps {
				one.done[at] += p.Count(pawl.MetricDone)
				first, last = min(first, at), max(last, at)
			}
		}
	}
	// The newest step is not over, or not all processes have handed it over: it would look like a fall.
	if last > 2 && from.Add(time.Duration(last+1)*step).After(to.Add(-2*time.Minute)) {
		last--
	}
	flows := make(map[string]queueFlow, len(all))
	for name, s := range all {
		f := queueFlow{Known: true, In: min(to.Sub(from), time.Duration(steps-first)*step), Ended: s.total.Runs(), Kinds: s.kinds, QueueP95: s.total.QueueTime.Quantile(.95),
			RunP95: s.total.RunTime.Quantile(.95)}
		bad, good := float64(s.total.Count(pawl.MetricFailed)+s.total.Count(pawl.MetricDead)), float64(s.total.Count(pawl.MetricDone))
		f.Failed = percent(bad, bad+good)
		if bad+good > 0 {
			f.FailedShare = bad / (bad + good)
		}
		for i := range last + 1 {
			f.Points = append(f.Points, float64(s.done[i])/step.Minutes())
		}
		for i := last; i >= first && f.RecentIn < recentTime; i-- { // before the first there was nobody who counted
			f.Recent, f.RecentIn = f.Recent+s.done[i], f.RecentIn+step
		}
		if f.RecentIn > 0 {
			f.PerMinute = float64(f.Recent) / f.RecentIn.Minutes()
			if f.Recent > 0 {
				number, unit := rate(f.Recent, f.RecentIn)
				f.Rate = number + strings.TrimPrefix(" "+unit, " /min")
			}
		}
		flows[name] = f
	}
	return flows
}

// trends are how many jobs were ready in each queue while somebody looked: the store keeps no such history.
type trends struct {
	mu     sync.Mutex
	queues map[string][]trendPoint
}

type trendPoint struct {
	at    time.Time
	ready int
	more  bool
}

// Bounds of trends, and how much is needed to tell one.
const (
	trendKept  = 5 * time.Minute
	trendLeast = 10 // samples
	trendTime  = 10 * time.Second
	trendRest  = 900 * time.Millisecond
)

// note adds a look.
func (t *trends) note(now time.Time, states []pawl.QueueState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.queues
	t.queues = make(map[string][]trendPoint, len(states)) // those that are gone are forgotten
	for i := range states {
		q := &states[i]
		points := was[q.Name]
		if n := len(points); n > 0 {
			switch d := now.Sub(points[n-1].at); {
			case d < 0, d > time.Minute:
				points = nil // the clock was set, or nobody has looked: a line over the gap would lie
			case d < trendRest:
				t.queues[q.Name] = points
				continue
			}
		}
		for len(points) > 0 && now.Sub(points[0].at) > trendKept {
			points = points[1:]
		}
		if q.Ready.Jobs > 0 || len(points) > 0 && points[len(points)-1].ready > 0 {
			points = append(points[:len(points):len(points)], trendPoint{now, q.Ready.Jobs, q.Ready.More})
			t.queues[q.Name] = points
		}
	}
}

// of is how fast the backlog of a queue grows, in jobs a minute, below 0 where it shrinks; not before that is known.
func (t *trends) of(name string) (perMinute float64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	points := t.queues[name]
	for i := len(points) - 1; i >= 0; i-- {
		if points[i].more { // a count that came to its bound says nothing about before
			points = points[i+1:]
			break
		}
	}
	if len(points) < trendLeast {
		return 0, false
	}
	first, last := points[0], points[len(points)-1]
	d := last.at.Sub(first.at)
	if d < trendTime {
		return 0, false
	}
	return float64(last.ready-first.ready) / d.Minutes(), true
}
