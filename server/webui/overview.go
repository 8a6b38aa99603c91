package webui

import (
	"cmp"
	"html/template"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
)

var overviewPages = []page{{
	path: "/", name: "overview", title: "Overview", ranges: true, calm: true, early: true, load: loadOverview,
	nav: nav{label: "Overview", icon: "n-over", order: 10, tab: true, key: "o", count: func(l *look) badge { return badge{Tab: l.needs()} }},
	regions: []region{
		{name: "need", every: time.Second, fails: "What needs someone", load: loadNeeds},
		{name: "kpi", every: time.Second, fails: "How things stand", load: loadKPIs},
		{name: "charts", every: 5 * time.Second, fails: "Metrics", load: loadCharts},
		{name: "failures", every: 5 * time.Second, fails: "Failures", load: loadFailures},
		{name: "kinds", every: 5 * time.Second, fails: "Metrics", load: loadKinds},
		{name: "try", every: 5 * time.Second, load: loadTry},
	},
}}

// overviewData is what all parts share.
type overviewData struct {
	New bool // nothing was ever enqueued
	Try bool // there is a list of what to try
}

func loadOverview(v *view) (any, error) {
	d := overviewData{Try: v.app.opts.Tour != nil && v.Prefs.Hide != "try"}
	if l, err := v.look(); err == nil { // else its parts say so
		d.New = l.All.Jobs == 0
	}
	return d, nil
}

func loadCharts(v *view) (any, error) {
	f, err := v.flow("", "")
	if err != nil {
		return nil, err
	}
	return f.charts(), nil
}

// failureRows is the table of failures.
type failureRows struct {
	Words string
	List  []failureGroup
	Marks []mark
	More  int
	Known bool // anything was measured
}

// Common is what the failures of a group have in common.
func (r failureRows) Common(now time.Time, g *failureGroup) template.HTML {
	text := says("first ", ago(now, g.First.Time))
	for _, m := range r.Marks {
		if d := g.First.Time.Sub(m.At); d >= 0 && d < 10*time.Minute {
			text = says("first ", ago(now, g.First.Time), ", ", age(d), " after ", said(m.Version), " started")
		}
	}
	switch {
	case len(g.Keys) == 1 && !g.MoreKeys:
		text += says(", key ", said(g.Keys[0]), " only")
	case len(g.Versions) == 1 && !g.MoreVersions && len(r.Marks) > 0:
		text += says(", all on ", said(g.Versions[0]))
	}
	return text
}

func loadFailures(v *view) (any, error) {
	groups, err := v.failures("")
	if err != nil {
		return nil, err
	}
	f, err := v.flow("", "")
	if err != nil {
		return nil, err
	}
	const shown = 8
	return failureRows{v.span().words(), groups[:min(len(groups), shown)], f.Marks, max(len(groups)-shown, 0), f.Known}, nil
}

// kindRows is the table of the slowest kinds.
type kindRows struct {
	Words string
	Sort  string
	List  []kindFlow
}

func loadKinds(v *view) (any, error) {
	kinds, span, err := v.kinds()
	if err != nil {
		return nil, err
	}
	by := map[string]func(k *kindFlow) float64{
		"done":   func(k *kindFlow) float64 { return float64(k.Count(pawl.MetricDone)) },
		"failed": func(k *kindFlow) float64 { return float64(k.Failed()) },
		"p95":    func(k *kindFlow) float64 { return k.RunTime.Quantile(.95).Seconds() },
		"p99":    func(k *kindFlow) float64 { return k.RunTime.Quantile(.99).Seconds() },
	}
	sort := v.query.Get("sort")
	if by[sort] == nil {
		sort = "p99"
	}
	slices.SortStableFunc(kinds, func(a, b kindFlow) int { return cmp.Compare(by[sort](&b), by[sort](&a)) })
	return kindRows{span.words(), sort, kinds[:min(len(kinds), 8)]}, nil
}

// Failed are attempts that failed, whether they are tried again or not.
func (k *kindFlow) Failed() uint64 { return k.Count(pawl.MetricFailed) + k.Count(pawl.MetricDead) }

// Done are jobs that succeeded.
func (k *kindFlow) Done() uint64 { return k.Count(pawl.MetricDone) }

// P95 and P99 are of run times.
func (k *kindFlow) P95() string { return runTime(k, .95) }

// P99 is as P95.
func (k *kindFlow) P99() string { return runTime(k, .99) }

func runTime(k *kindFlow, q float64) string {
	if k.RunTime.Count() == 0 {
		return "–"
	}
	return duration(k.RunTime.Quantile(q))
}
