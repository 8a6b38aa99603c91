package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job/histogram"
)

// What jobs of the whole cluster came to since this process began to look, as processes
// hand it over: once a minute and when they stop.
var (
	runsBegan = desc("runs_began_total", "Runs that began, of the whole cluster, by queue and kind. A minute or two late.", "queue", "kind")
	runsEnded = desc("runs_ended_total", "Runs that ended, of the whole cluster, by outcome: done, failed (and tried again), "+
		"dead, cancelled, snoozed, throttled, released, lost, parked. A minute or two late.", "queue", "kind", "outcome")
	queueSeconds = desc("job_queue_seconds", "From due to begun, of jobs of the whole cluster. A minute or two late.", "queue")
	runSeconds   = desc("job_run_seconds", "What handlers took, of the whole cluster. A minute or two late.", "queue")
	storeSeconds = desc("store_call_seconds", "What beats, claims and ends of all workers took. A minute or two late.")
)

// settled is after how long a minute is taken as whole. A process that could not reach its
// store keeps 15 minutes; what comes later than this is not counted here.
const settled = 20 * time.Minute

// totals adds up minutes for counters that only grow: those before settled once and for
// all, those since with each look anew.
type totals struct {
	whole  time.Time // minutes before it are in kept
	kept   sums
	recent sums
}

// sums are counts and histograms.
type sums struct {
	pairs  map[pair]*counts
	queues byQueue[times]
	calls  histogram.Histogram
}

type pair struct{ queue, kind string }

type counts map[pawl.MetricCount]uint64

type times struct{ queue, run histogram.Histogram }

func newTotals() totals { return totals{kept: newSums(), recent: newSums()} }

func newSums() sums { return sums{pairs: map[pair]*counts{}, queues: newByQueue[times]()} }

// ask reads the minutes since whole.
func (t *totals) ask(ctx context.Context, e *pawl.Engine) error {
	now, err := e.Store().Now(ctx)
	if err != nil {
		return err
	}
	if t.whole.IsZero() {
		t.whole = now.Truncate(time.Minute)
	}
	to := now.Add(time.Minute)
	jobs, err := e.Metrics(ctx, pawl.MetricQuery{From: t.whole, To: to, Step: time.Minute})
	if unless(err) != nil {
		return err
	}
	loads, err := e.WorkerLoads(ctx, pawl.LoadQuery{From: t.whole, To: to, Step: time.Minute})
	if unless(err) != nil {
		return err
	}
	cut := now.Add(-settled).Truncate(time.Minute)
	recent, dropped := newSums(), newSums()
	into := func(start time.Time) *sums {
		switch {
		case start.Before(t.whole): // it only reaches into the range, and was counted
			return &dropped
		case start.Before(cut):
			return &t.kept
		}
		return &recent
	}
	for i := range jobs.Series {
		s := &jobs.Series[i]
		for j := range s.Points {
			into(s.Points[j].Start).add(pair{s.Queue, s.Kind}, &s.Points[j].JobMetrics, &t.kept)
		}
	}
	for i := range loads {
		into(loads[i].Start).calls.Merge(&loads[i].Calls)
	}
	if cut.After(t.whole) {
		t.whole = cut
	}
	t.recent = recent
	return nil
}

// add adds a minute. Which names are shown apart is settled in named, where they stay:
// what a counter has shown under a name must not move to another.
func (s *sums) add(p pair, m *pawl.JobMetrics, named *sums) {
	if _, ok := named.pairs[p]; !ok {
		if len(named.pairs) >= maxPairs {
			p = pair{other, other}
		}
		if named.pairs[p] == nil {
			named.pairs[p] = &counts{}
		}
	}
	if s.pairs[p] == nil {
		s.pairs[p] = &counts{}
	}
	for _, c := range metricCounts {
		(*s.pairs[p])[c] += m.Count(c)
	}
	queue := p.queue
	if named.queues.list[queue] == nil {
		if len(named.queues.list) >= maxQueues {
			queue = other
		}
		named.queues.at(queue)
	}
	of := s.queues.at(queue)
	of.queue.Merge(&m.QueueTime)
	of.run.Merge(&m.RunTime)
}

var metricCounts = []pawl.MetricCount{
	pawl.MetricBegan, pawl.MetricDone, pawl.MetricFailed, pawl.MetricDead, pawl.MetricCancelled, pawl.MetricSnoozed,
	pawl.MetricThrottled, pawl.MetricReleased, pawl.MetricLost, pawl.MetricParked,
}

func (t *totals) show(to chan<- prometheus.Metric) {
	for p, kept := range t.kept.pairs { // has the names of both
		recent := t.recent.pairs[p]
		for _, c := range metricCounts {
			n := (*kept)[c]
			if recent != nil {
				n += (*recent)[c]
			}
			switch {
			case c == pawl.MetricBegan:
				show(to, runsBegan, prometheus.CounterValue, n, p.queue, p.kind)
			case n > 0 || c == pawl.MetricDone || c == pawl.MetricFailed || c == pawl.MetricDead:
				show(to, runsEnded, prometheus.CounterValue, n, p.queue, p.kind, c.String())
			}
		}
	}
	for name, kept := range t.kept.queues.list {
		queue, run := kept.queue.Clone(), kept.run.Clone()
		if recent := t.recent.queues.list[name]; recent != nil {
			queue.Merge(&recent.queue)
			run.Merge(&recent.run)
		}
		showHistogram(to, queueSeconds, &queue, name)
		showHistogram(to, runSeconds, &run, name)
	}
	calls := t.kept.calls.Clone()
	calls.Merge(&t.recent.calls)
	showHistogram(to, storeSeconds, &calls)
}

// bounds are those of the buckets shown: of the histogram's own, so that they are exact,
// every second power of two from 100 µs to about 30 hours.
var bounds = func() (list []time.Duration) {
	for d := histogram.Least; d <= 32*time.Hour; d *= 4 {
		list = append(list, d)
	}
	return list
}()

func showHistogram(to chan<- prometheus.Metric, d *prometheus.Desc, h *histogram.Histogram, labels ...string) {
	buckets := make(map[float64]uint64, len(bounds))
	for _, b := range bounds {
		buckets[b.Seconds()] = h.Below(b)
	}
	to <- prometheus.MustNewConstHistogram(d, h.Count(), h.Sum().Seconds(), buckets, labels...)
}
