package webui

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// flow is what jobs came to in a span, for charts and tables: one read for all who look at the same.
type flow struct {
	span
	Steps []step
	Total pawl.JobMetrics
	Marks []mark
	Known bool // anything was counted in the span
}

// step is one point of a chart.
type step struct {
	Start time.Time
	pawl.JobMetrics
	Minutes float64 // that its counts are of; 0: nothing was counted
}

// mark is where a version began.
type mark struct {
	Version string
	At      time.Time
}

// flow reads it; queue and kind narrow it, empty means all.
func (v *view) flow(queue, kind string) (*flow, error) {
	s := v.span()
	now, shared := v.Now, &view{app: v.app}
	return measured(v, "flow "+s.key()+"\n"+queue+"\n"+kind, 5*time.Second, func(ctx context.Context) (*flow, error) {
		f, err := v.app.readFlow(ctx, s, queue, kind)
		if err == nil {
			f.underway(now)
			shared.ctx = ctx
			if l, err := shared.wholeLook(); err == nil {
				f.begun(l.Workers)
				f.Marks = marksOf(l.Workers, s)
			}
		}
		return f, err
	})
}

func (a *app) readFlow(ctx context.Context, s span, queue, kind string) (*flow, error) {
	m, err := a.e.Metrics(ctx, pawl.MetricQuery{From: s.From, To: s.To, Queue: queue, Kind: kind, Step: s.Step, Total: true})
	if err != nil {
		return nil, err
	}
	f := &flow{span: s, Steps: make([]step, max(int(s.To.Sub(s.From)/s.Step), 1))}
	for i := range f.Steps {
		f.Steps[i].Start = s.From.Add(time.Duration(i) * s.Step)
	}
	for i := range m.Series {
		for n := range m.Series[i].Points {
			p := &m.Series[i].Points[n]
			f.Total.Merge(&p.JobMetrics)
			at := int(p.Start.Sub(s.From) / s.Step)
			if at < 0 || at >= len(f.Steps) {
				continue
			}
			f.Steps[at].Merge(&p.JobMetrics)
			f.Steps[at].Minutes = max(f.Steps[at].Minutes, p.Span.Minutes())
			f.Known = true
		}
	}
	if from, _ := f.known(); queue == "" && kind == "" && f.Known {
		switch s.Name {
		case "1h":
			a.young.Store(f.Steps[from].Start.After(s.To.Add(-14 * time.Minute)))
		case "15m":
			a.young.CompareAndSwap(true, from > 0)
		}
	}
	return f, nil
}

// marksOf are the versions that began in the span, but for those of the very first.
func marksOf(workers []pawl.WorkerInfo, s span) (marks []mark) {
	first := map[string]time.Time{}
	var oldest time.Time
	for i := range workers {
		w := &workers[i]
		if oldest.IsZero() || w.Started.Before(oldest) {
			oldest = w.Started
		}
		if at, ok := first[w.Worker.Version]; w.Worker.Version != "" && (!ok || w.Started.Before(at)) {
			first[w.Worker.Version] = w.Started
		}
	}
	for version, at := range first {
		if at.After(s.From) && at.Before(s.To) && at.Sub(oldest) > 10*time.Second {
			marks = append(marks, mark{version, at})
		}
	}
	slices.SortFunc(marks, func(x, y mark) int { return x.At.Compare(y.At) })
	return marks
}

// perMinute is a count of each step; NaN behind the last that anything is known of, and before the first.
func (f *flow) perMinute(of ...pawl.MetricCount) []float64 {
	list := make([]float64, len(f.Steps))
	from, to := f.known()
	for i := range f.Steps {
		s := &f.Steps[i]
		if i < from || i > to {
			list[i] = math.NaN()
			continue
		}
		if s.Minutes > 0 {
			for _, c := range of {
				list[i] += float64(s.Count(c)) / s.Minutes
			}
		}
	}
	return list
}

// underway takes the step that goes on for what has passed of it. Its first minute is no rate yet: it would look like a fall at the
// end of each chart. A system of two minutes has nothing better to show.
func (f *flow) underway(now time.Time) {
	from, to := f.known()
	if to < 0 || !f.Steps[to].Start.Add(f.Step).After(now) {
		return
	}
	last := &f.Steps[to]
	switch passed := now.Sub(last.Start).Minutes(); {
	case passed >= 1:
		last.Minutes = min(last.Minutes, passed)
	case to-from >= 2:
		last.Minutes = 0
	}
}

// known are the first and the last step in which anything was counted.
func (f *flow) known() (from, to int) {
	from, to = len(f.Steps), -1
	for i := range f.Steps {
		if f.Steps[i].Minutes > 0 {
			from, to = min(from, i), i
		}
	}
	return from, to
}

// quantile of each step, in seconds.
func (f *flow) quantile(of func(*pawl.JobMetrics) *pawl.Histogram, q float64) []float64 {
	list := make([]float64, len(f.Steps))
	for i := range f.Steps {
		list[i] = math.NaN()
		if h := of(&f.Steps[i].JobMetrics); h.Count() > 0 {
			list[i] = h.Quantile(q).Seconds()
		}
	}
	return list
}

func (f *flow) starts() []time.Time {
	list := make([]time.Time, len(f.Steps))
	for i := range f.Steps {
		list[i] = f.Steps[i].Start
	}
	return list
}

func (f *flow) marked(text bool) (list []tick) {
	for _, m := range f.Marks {
		t := tick{At: float64(m.At.Sub(f.From)) / float64(f.To.Sub(f.From)) * 100}
		if text {
			t.Text = m.Version
		}
		list = append(list, t)
	}
	return apart(list)
}

// latest is the last few minutes that are known: what happened in them, and how long they are.
func (f *flow) latest() (sum pawl.JobMetrics, in time.Duration) {
	from, to := f.known()
	for i := to; i >= from && in < 5*time.Minute; i-- {
		sum.Merge(&f.Steps[i].JobMetrics)
		in += f.length(i)
	}
	return sum, in
}

// length is how much of a step within those that are known has passed: the last may go on, and in the first it may have begun.
func (f *flow) length(i int) time.Duration {
	if m := time.Duration(f.Steps[i].Minutes * float64(time.Minute)); m > 0 && m < f.Step {
		return m
	}
	return f.Step
}

// lived is the time of which anything is known.
func (f *flow) lived() (in time.Duration) {
	from, to := f.known()
	for i := from; i <= to; i++ {
		in += f.length(i)
	}
	return in
}

// begun takes the first step for what is left of it after the first worker began, where nothing is known from before: else the rates of
// a young system are divided by time in which nothing ran.
func (f *flow) begun(workers []pawl.WorkerInfo) {
	from, to := f.known()
	if to < 0 || from == 0 || len(workers) == 0 {
		return
	}
	oldest := workers[0].Started
	for i := range workers {
		oldest = earlier(oldest, workers[i].Started)
	}
	first := &f.Steps[from]
	if late := oldest.Sub(first.Start); late > 0 && late < f.Step {
		first.Minutes = max(min(first.Minutes, f.Step.Minutes())-late.Minutes(), 1./60)
	}
}

// charted are the charts of a flow.
type charted struct {
	Known                          bool
	Done, NotDone, Queue, Run      *plot
	Latest, LatestQueue, LatestRun map[string]string // values that the heads show
}

func (f *flow) charts() *charted {
	c := &charted{Known: f.Known, Latest: map[string]string{}}
	c.Done = &plot{Class: "h1", Label: "Jobs done a minute", Marks: f.marked(true),
		Series: []series{{Name: "done", Class: "done", Area: true, Points: f.perMinute(pawl.MetricDone)}}}
	c.Done.linear(most(c.Done.Series[0].Points), true)
	c.NotDone = &plot{
		Class: "h2", Label: "Runs a minute that were not done: dead, retried, throttled", Stack: true, Marks: f.marked(false), Times: f.along(),
		Series: []series{
			{Name: "dead", Class: "dead", Points: f.perMinute(pawl.MetricDead)}, {Name: "retried", Class: "retry",
				Points: f.perMinute(pawl.MetricFailed)},
			{Name: "throttled", Class: "cool", Points: f.perMinute(pawl.MetricThrottled)},
		},
	}
	c.NotDone.linear(most(f.perMinute(pawl.MetricDead, pawl.MetricFailed, pawl.MetricThrottled)), false)
	c.Queue = f.times("Queue time", func(j *pawl.JobMetrics) *pawl.Histogram { return &j.QueueTime })
	c.Run = f.times("Run time", func(j *pawl.JobMetrics) *pawl.Histogram { return &j.RunTime })
	for _, p := range []*plot{c.Done, c.NotDone} {
		p.over(f.starts(), "")
		for _, s := range p.Series {
			c.Latest[s.Name] = "–"
			if v, ok := last(s.Points); ok {
				c.Latest[s.Name] = count(int(math.Round(v)))
			}
		}
	}
	c.LatestQueue, c.LatestRun = lastTimes(c.Queue), lastTimes(c.Run)
	return c
}

func lastTimes(p *plot) map[string]string {
	m := map[string]string{}
	for _, s := range p.Series {
		m[s.Name] = "–"
		if v, ok := last(s.Points); ok {
			m[s.Name] = duration(time.Duration(v * float64(time.Second)))
		}
	}
	return m
}

func (f *flow) times(name string, of func(*pawl.JobMetrics) *pawl.Histogram) *plot {
	p := &plot{Class: "h3", Label: name + " p50, p95 and p99 on a logarithmic scale", Marks: f.marked(false), Times: f.along(), Ends: true}
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", .5}, {"p95", .95}, {"p99", .99}} {
		p.Series = append(p.Series, series{Name: q.name, Class: q.name, Points: f.quantile(of, q.at)})
	}
	p.logarithmic()
	p.over(f.starts(), "s")
	return p
}

func most(points []float64) (m float64) {
	for _, v := range points {
		if !math.IsNaN(v) {
			m = max(m, v)
		}
	}
	return m
}

// failureGroup is failures that are alike, with how often they came in each step.
type failureGroup struct {
	pawl.FailureGroup
	Trend []float64
}

// failures are those of a span, the most first.
func (v *view) failures(kind string) ([]failureGroup, error) {
	s := v.span()
	return measured(v, "failures "+s.key()+"\n"+kind, 5*time.Second, func(ctx context.Context) ([]failureGroup, error) {
		return v.app.readFailures(ctx, s, kind)
	})
}

func (a *app) readFailures(ctx context.Context, s span, kind string) ([]failureGroup, error) {
	from, ok := a.e.Store().(store.Metrics)
	if !ok {
		return nil, nil
	}
	wide := max(s.Step, (s.To.Sub(s.From) / 30).Round(time.Minute))
	reply, err := from.ReadMetrics(ctx, store.MetricQuery{Class: metric.OfFailures, From: s.From, To: s.To, Kind: kind, Step: wide})
	if err != nil {
		return nil, err
	}
	var list []failureGroup
	steps := int(s.To.Sub(s.From)/wide) + 1
	for _, p := range reply.Points {
		n := len(list)
		if n == 0 || list[n-1].Fingerprint != p.Name || list[n-1].Kind != p.Kind {
			list = append(list, failureGroup{pawl.FailureGroup{Fingerprint: p.Name, Kind: p.Kind}, make([]float64, steps)})
			n++
		}
		g := &list[n-1]
		of := p.Value.(*metric.Failures)
		g.Merge(of)
		if at := int(p.Start.Sub(s.From) / wide); at >= 0 && at < steps {
			g.Trend[at] += float64(of.Failed)
		}
	}
	slices.SortStableFunc(list, func(x, y failureGroup) int {
		return cmp.Or(cmp.Compare(y.Dead, x.Dead), cmp.Compare(y.Failed, x.Failed))
	})
	return list, nil
}
