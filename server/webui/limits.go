package webui

import (
	"encoding/json"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// limitsPages is the list of limits, with the keys that are at their bound below.
var limitsPages = []page{{
	path: "/limits", name: "limits", title: "Limits", load: loadLimits, nav: nav{label: "Limits", icon: "n-limits", order: 60, key: "l"},
	regions: []region{
		{name: "limits-lead", every: 2 * time.Second},
		{name: "limit-live", every: 2 * time.Second, items: limitItems},
		{name: "limit-parts", every: 2 * time.Second, items: limitParts},
		{name: "limit-keys", every: 2 * time.Second, fails: "Keys", load: loadKeys},
	},
}}

// Bounds of the page.
const (
	limitsPerPage = 50
	keyBuckets    = 100  // of a limit by key, of which tokens are added up
	gateSample    = 1000 // running jobs, and waiting ones, that are looked at for keys
	maxBoundKeys  = 100
)

// limitNow is a limit: what holds, what code declares, and who changed that.
type limitNow struct {
	Name            string
	Holds, Declared job.LimitSettings
	Owner           string
	Overridden      []string
	Override        *store.Override
}

// limitsOf are the limits of the settings, by name.
func limitsOf(e *store.Effective) (list []limitNow) {
	for _, s := range e.Settings {
		if s.Kind != store.SettingLimit {
			continue
		}
		l := limitNow{Name: s.Name, Owner: s.Owner, Overridden: s.Overridden, Override: s.Override}
		_ = json.Unmarshal(s.Value, &l.Holds) // what cannot be read is shown as not set (P8)
		_ = json.Unmarshal(s.Declared, &l.Declared)
		list = append(list, l)
	}
	return list
}

// limitRow is one limit as the list shows it.
type limitRow struct {
	limitNow
	ID       string
	Scope    template.HTML
	Rate     string // tokens a second; empty: no bound
	Burst    int
	Bucket   *bucketNow // of one that is acquired from
	Acquired string
	Waiting  *pawl.Counted
	Running  string // how many run at once
	AtOnce   template.HTML
	Drained  time.Time
	Changed  []settingRow // what operators have set
	Fields   []settingRow // what can be changed, while the form is open
	Edit     bool
	Link     string
	Close    string
}

type limitsData struct {
	numbered
	Rows    []*limitRow
	Drained int
	Changed int
}

func loadLimits(v *view) (any, error) {
	now, err := v.queuesNow()
	if err != nil {
		return nil, err
	}
	all := limitsOf(&now.Holds)
	d := &limitsData{numbered: v.numbered(len(all), limitsPerPage)}
	for _, l := range all {
		if len(l.Overridden) > 0 {
			d.Changed++
		}
	}
	shown := all[d.From:d.To]
	if v.live { // those that the page has
		ids := strings.Split(v.query.Get(watchParam), "-")
		shown = slices.DeleteFunc(all, func(l limitNow) bool { return !slices.Contains(ids, limitID(l.Name)) })
	}
	var ids []string
	for _, l := range shown {
		row, err := v.limitRow(l)
		if err != nil {
			return nil, err
		}
		ids = append(ids, row.ID)
		d.Rows = append(d.Rows, row)
	}
	if err := v.readBuckets(d.Rows); err != nil {
		return nil, err
	}
	for _, row := range d.Rows {
		if !row.Drained.IsZero() {
			d.Drained++
		}
	}
	v.watch(ids)
	return d, nil
}

func (v *view) limitRow(l limitNow) (*limitRow, error) {
	r := &limitRow{limitNow: l, ID: limitID(l.Name), Scope: v.scope(&l.Holds)}
	if rate := l.Holds.Rate(); rate != (job.Rate{}) {
		r.Rate, r.Burst = perSecond(rate.PerSecond), rate.Burst
	}
	if n := l.Holds.MaxRunning(); n > 0 {
		r.Running = count(n)
	}
	if l.Holds.OfJobs() {
		gates, err := v.boundKeys()
		if err != nil {
			return nil, err
		}
		counts := gates.Limits[l.Name]
		r.Waiting = &counts.Ready
		if n := l.Holds.MaxRunning(); n > 0 && !l.Holds.PerKey {
			r.AtOnce = share(counts.Running.Jobs, n)
		}
	}
	r.Acquired = v.acquired(r)
	for _, f := range limitFields {
		row := settingRow{Field: f.name, Name: f.text, Declared: f.show(&l.Declared), Now: f.show(&l.Holds), Bounds: f.bounds,
			Value: f.exact(&l.Holds)}
		if row.Over = slices.Contains(l.Overridden, f.name); row.Over {
			row.Own = true
			if o := l.Override; o != nil {
				row.By, row.Note, row.Since = o.By, o.Note, o.Since
			}
			r.Changed = append(r.Changed, row)
		}
		if l.Owner == "" {
			row.Declared = "nothing"
		}
		if f.fits(&l.Holds) || row.Over {
			r.Fields = append(r.Fields, row)
		}
	}
	if v.Can(auth.Operator) {
		field := v.query.Get("edit")
		r.Edit = v.query.Get("open") == l.Name
		for i := range r.Fields {
			f := &r.Fields[i]
			f.Edit = r.Edit && f.Field == field
			f.Link, f.Close = v.with("open", l.Name, "edit", f.Field), v.with("open", l.Name, "edit", "")
		}
		if r.Link = v.with("open", l.Name, "edit", ""); r.Edit {
			r.Link = v.with("open", "", "edit", "")
		}
	}
	return r, nil
}

func limitID(name string) string { return "l" + rowID(name) }

// scope says what a limit is about.
func (v *view) scope(s *job.LimitSettings) template.HTML {
	var parts []any
	if s.Queue != "" {
		parts = append(parts, "queue ", anchored(v.app.link("/queues", "open", s.Queue), said(s.Queue)))
	}
	if s.Kind != "" {
		if parts != nil {
			parts = append(parts, ", ")
		}
		parts = append(parts, "kind ", said(s.Kind))
	}
	if parts == nil {
		parts = append(parts, "what handlers acquire")
	}
	if s.PerKey {
		parts = append(parts, ", each key")
	}
	if s.InOrder() {
		parts = append(parts, " in order")
	}
	return says(parts...)
}

// perSecond is a rate: 5 a second, 84 a minute, 3 an hour.
func perSecond(r float64) string {
	for _, unit := range []struct {
		times float64
		name  string
	}{{1, " a second"}, {60, " a minute"}, {3600, " an hour"}, {86400, " a day"}} {
		if n := r * unit.times; n >= 1 || unit.times == 86400 {
			text := strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64)
			if n >= 1000 {
				text = count(int(math.Round(n)))
			}
			return text + unit.name
		}
	}
	return ""
}

// acquired is how many jobs of the limit began a minute: what a rate of jobs let through. What handlers acquire is not counted.
func (v *view) acquired(r *limitRow) string {
	if !r.Holds.OfJobs() {
		return ""
	}
	flows, err := v.queueFlows()
	if err != nil {
		return ""
	}
	var began uint64
	in := time.Hour
	for queue, f := range flows {
		in = f.In
		for kind, m := range f.Kinds {
			if r.Holds.Covers(queue, kind) {
				began += m.Count(pawl.MetricBegan)
			}
		}
	}
	number, unit := rate(began, in)
	return number + strings.TrimPrefix(" "+unit, " /min")
}

// limitItems are the rows that changed.
func limitItems(v *view) (list []item, err error) {
	if d, ok := v.data.(*limitsData); ok && v.live {
		for _, r := range d.Rows {
			list = append(list, item{r.ID, r})
		}
	}
	return list, nil
}

// limitParts are the settings of the limit that is open, while nobody fills in a form there.
func limitParts(v *view) (list []item, err error) {
	if d, ok := v.data.(*limitsData); ok && v.live && v.query.Get("edit") == "" {
		for _, r := range d.Rows {
			if r.Edit {
				list = append(list, item{"limit-set", r})
			}
		}
	}
	return list, nil
}

// Foot is what the foot of the list says.
func (d *limitsData) Foot() string {
	if d.All <= limitsPerPage {
		return ""
	}
	return d.says(false, "limit", "limits")
}
