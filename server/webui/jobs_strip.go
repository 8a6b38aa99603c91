package webui

import (
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// strip is what a list says first that is narrowed to one kind or queue.
type strip struct {
	Noun, Name string
	Words      string
	Paused     bool
	KPIs       []kpi
	Charts     *charted
}

func loadStrip(v *view) (any, error) {
	d := v.data.(*jobsData)
	noun, name := d.Query.only()
	if noun == "" {
		return nil, nil
	}
	queue, kind := "", name
	if noun == "queue" {
		queue, kind = name, ""
	}
	f, err := v.flow(queue, kind)
	if err != nil {
		return nil, err
	}
	s := &strip{Noun: noun, Name: name, Words: f.words(), Charts: f.charts()}
	for _, p := range []*plot{s.Charts.Queue, s.Charts.Run} {
		p.small()
	}
	quantiles := func(name string, h *pawl.Histogram) kpi {
		if h.Count() == 0 {
			return kpi{Name: name + " p95", Value: "–", Note: unmeasured}
		}
		number, unit := measure(h.Quantile(.95))
		note := "p50 " + duration(h.Quantile(.5)) + ", p99 " + duration(h.Quantile(.99))
		return kpi{Name: name + " p95", Value: number, Unit: unit, Note: note, Title: note}
	}
	s.KPIs = []kpi{doneKPI(f), notDoneKPI(f), quantiles("Queue time", &f.Total.QueueTime), quantiles("Run time", &f.Total.RunTime)}
	return s, nil
}

// groups are the errors that jobs died of.
type groups struct {
	Dead  pawl.Counted // now, of any error
	Died  int          // in the range, of these: whoever was retried since is no longer dead
	Total int          // errors
	List  []deadGroup
	All   string // address of all of them; empty where they are shown
	Kind  string // of all of them, where the list is narrowed to it
}

// shownGroups are shown at first. Of so many it is counted how many are dead now, by the bounded count that the overview makes too.
const shownGroups = 4

// deadGroup is one of them.
type deadGroup struct {
	failureGroup
	Now   pawl.Counted
	Known bool // how many are dead now
}

// None reports whether nothing is dead of it any more: there is nothing to retry.
func (g deadGroup) None() bool { return g.Known && g.Now.Jobs == 0 && !g.Now.More }

// Retry is what its button says.
func (g deadGroup) Retry() string {
	if !g.Known {
		return "Retry…"
	}
	return "Retry " + counted(g.Now) + "…"
}

func loadGroups(v *view) (any, error) {
	d := v.data.(*jobsData)
	if d.Query.View != "dead" || v.query.Get("after") != "" {
		return nil, nil
	}
	if noun, _ := d.Query.only(); d.Query.narrow() && noun != "kind" { // deaths are counted by kind and error, by nothing else
		return nil, nil
	}
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	month := *v
	month.query = url.Values{"range": {"30d"}}
	list, err := month.failures(d.Query.Kind)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(g failureGroup) bool { return g.Dead == 0 })
	if len(list) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(list, func(a, b failureGroup) int { return b.Last.Time.Compare(a.Last.Time) })
	g := &groups{Dead: l.States[job.Dead], Total: len(list), Kind: d.Query.Kind}
	if g.Kind != "" && (g.Dead.Jobs > 0 || g.Dead.More) {
		if g.Dead, err = v.deadNow(g.Kind, ""); err != nil {
			return nil, err
		}
	}
	for i := range list {
		g.Died += int(list[i].Dead)
	}
	if v.query.Get("groups") == "" && len(list) > shownGroups {
		list, g.All = list[:shownGroups], v.With("groups", "all")
	}
	for i := range list {
		one := deadGroup{failureGroup: list[i]}
		switch {
		case g.Dead.Jobs == 0 && !g.Dead.More:
			one.Known = true
		case i < shownGroups:
			one.Now, err = v.deadNow(one.Kind, one.Fingerprint)
			if v.heldBack(err) {
				return nil, err
			}
			one.Known = err == nil
		}
		g.List = append(g.List, one)
	}
	return g, nil
}

// Names are the first of some names, as text.
func (failureGroup) Names(list []string, more bool) template.HTML {
	if len(list) == 0 {
		return `<span class="zero">–</span>`
	}
	text := strings.Join(list[:min(len(list), 3)], ", ")
	if more || len(list) > 3 {
		text += ", …"
	}
	return show(text, 60)
}
