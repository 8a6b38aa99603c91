package webui

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// queuesPages are the list, and the list with one queue open below its charts. Rows keep their place while the page is open: what
// changes is sent row by row, and never a form that somebody fills in.
var queuesPages = []page{
	{
		path: "/queues", name: "queues", title: "Queues", ranges: true, calm: true, load: loadQueues, regions: queuesRegions,
		nav: nav{label: "Queues", icon: "n-queues", order: 30, tab: true, key: "q", count: queuesFlag},
	},
	{path: "/queues/{name}", name: "queue", title: "Queue", under: "queues", ranges: true, load: loadQueues,
		regions: slices.Concat(queuesRegions, queueRegions)},
}

var queuesRegions = []region{
	{name: "queues-lead", every: 2 * time.Second},
	{name: "queue-live", every: 2 * time.Second, items: queueItems},
	{name: "queue-parts", every: 2 * time.Second, items: queueParts},
}

var queueRegions = []region{{name: "queue-strip", every: 5 * time.Second, fails: "Metrics", load: func(v *view) (any, error) {
	f, err := v.flow(v.params["name"], "")
	if err != nil {
		return nil, err
	}
	return f.charts(), nil
}}}

// queuesPerPage is how many rows there are at once.
const queuesPerPage = 100

// queueRow is one queue as the list shows it.
type queueRow struct {
	pawl.QueueState
	ID       string // of its element
	State    string
	Left     template.HTML // how long it cools down yet
	Changed  int           // settings that operators have changed
	Capacity int           // slots, or fewer where the cluster bounds them
	Flow     queueFlow
	Link     string // opens it, or closes it
	Open     *openQueue
	Held     bool // nothing of it starts
}

// queuesData is what the page shows.
type queuesData struct {
	numbered
	Rows       []*queueRow
	Lead       queuesLead
	Filter     string
	Order      string
	Orders     []anchor
	Keep       []fact // of the query, beside the filter
	Open       *queueRow
	More       bool   // there are more queues than one answer tells of
	NoMetrics  string // why there are none
	Later      bool   // they are still being added up
	Counted    string // of what time they are
	Unfiltered int
}

// queueState is the state of a queue, as people see it.
func queueState(q *pawl.QueueState, flow *queueFlow) string {
	switch {
	case q.Pause != nil && q.Pause.Scope == job.PauseAll:
		return "frozen"
	case q.Pause != nil:
		return "paused"
	case q.Workers == 0 && q.Known():
		return "unserved"
	case q.CoolDown != nil:
		return "cooling"
	case q.Ready.Jobs+q.Running.Jobs > 0, flow.PerMinute > 0:
		return "serving"
	}
	return "idle"
}

// rowID names the element of a queue, whatever the queue is called.
func rowID(name string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	return "q" + strconv.FormatUint(h.Sum64()>>24, 36)
}

// queuesNow is how all queues stand, and what holds for them.
type queuesNow struct {
	States []pawl.QueueState
	Reply  store.SettingsReply
	Holds  store.Effective
}

// queuesNow is the newest one: the queues of the look, those that only have settings, and the settings.
func (v *view) queuesNow() (*queuesNow, error) {
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	return cached(v, "queues", 2*time.Second, func(ctx context.Context) (*queuesNow, error) {
		reply, err := v.app.e.Store().Settings(ctx)
		if err != nil {
			return nil, err
		}
		n := &queuesNow{States: slices.Clone(l.Queues), Reply: reply, Holds: store.Resolve(reply)}
		told := map[string]bool{}
		for i := range n.States {
			told[n.States[i].Name] = true
		}
		var quiet []string
		for _, s := range n.Holds.Settings {
			if s.Kind == store.SettingQueue && !told[s.Name] && !job.IsPattern(s.Name) && len(n.States)+len(quiet) < store.MaxQueues {
				quiet = append(quiet, s.Name)
			}
		}
		if len(quiet) > 0 {
			others, err := v.app.e.Queues(ctx, quiet...)
			if err != nil {
				return nil, err
			}
			n.States = append(n.States, others...)
		}
		v.app.trends.note(l.Now, n.States)
		return n, nil
	})
}

// loadQueues reads the page, and what its stream sends.
func loadQueues(v *view) (any, error) {
	now, err := v.queuesNow()
	if err != nil {
		return nil, err
	}
	name := v.params["name"]
	d := &queuesData{Filter: strings.TrimSpace(v.query.Get("q")), Order: v.query.Get("order"), More: len(now.States) >= store.MaxQueues}
	flows, err := v.queueFlows()
	if d.Later = errors.Is(err, errLater); err != nil && (v.live || !d.Later) {
		if v.ctx.Err() != nil || v.heldBack(err) {
			return nil, err
		}
		d.NoMetrics = v.app.faultOf(v.ctx, err).Text
	}
	open := cmp.Or(name, v.query.Get("open"))
	rows := make([]*queueRow, 0, len(now.States))
	for i := range now.States {
		rows = append(rows, v.queueRow(&now.States[i], flows[now.States[i].Name]))
	}
	if name != "" && !slices.ContainsFunc(rows, func(r *queueRow) bool { return r.Name == name }) {
		row, err := v.quietQueue(name, flows[name])
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	d.Lead = leadOf(rows, now)
	d.Counted = v.span().counted(rows)
	d.Unfiltered = len(rows)
	d.Rows = d.chosen(v, rows, open, name)
	for _, r := range d.Rows {
		holds, _ := now.Holds.Queue(r.Name)
		r.Changed = len(holds.Overridden)
		r.Link = v.queueLink(r.Name, r.Name == open, name)
		if r.Name == open {
			d.Open = r
			if r.Open, err = v.openQueue(r, now); err != nil {
				return nil, err
			}
		}
	}
	if name != "" {
		v.Title, v.Crumb = name, []anchor{{"Queues", v.app.link("/queues")}}
	}
	ids := make([]string, len(d.Rows))
	for i, r := range d.Rows {
		ids[i] = r.ID
	}
	v.watch(ids)
	return d, nil
}

// quietQueue is one that nobody tells of by itself: it is shown where anything was counted of it or any job of it is left.
func (v *view) quietQueue(name string, flow queueFlow) (*queueRow, error) {
	if err := job.CheckName("queue", name); err != nil {
		return nil, err
	}
	one, err := v.app.e.List(v.ctx, pawl.Filter{Queue: name}, pawl.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	if flow.Ended == 0 && len(one.Jobs) == 0 {
		return nil, job.NotFound("queue", name)
	}
	return v.queueRow(&pawl.QueueState{Name: name}, flow), nil
}

func (v *view) queueRow(q *pawl.QueueState, flow queueFlow) *queueRow {
	r := &queueRow{QueueState: *q, ID: rowID(q.Name), Flow: flow, Capacity: q.Slots}
	if q.Total > 0 {
		r.Capacity = min(r.Capacity, q.Total)
	}
	r.State = queueState(q, &flow)
	r.Held = slices.Contains([]string{"frozen", "paused", "unserved", "cooling"}, r.State)
	if q.CoolDown != nil && r.State == "cooling" {
		r.Left = left(v.Now, q.CoolDown.Until)
	}
	return r
}

// Own reports whether the queue itself is paused.
func (r *queueRow) Own() bool { return r.Pause != nil && r.Pause.Scope == job.PauseQueue }

// queueLink opens a queue in the list, or closes it.
func (v *view) queueLink(name string, open bool, page string) string {
	if page != "" { // there one is open always
		if open {
			return v.app.link("/queues", "range", v.query.Get("range"))
		}
		return v.app.link("/queues/{}", name, "range", v.query.Get("range"))
	}
	if open {
		return v.with("open", "", "edit", "")
	}
	return v.with("open", name, "edit", "")
}

// with is With without leaving the page of the list.
func (v *view) with(pairs ...any) string {
	return v.With(append(pairs, "after", v.query.Get("after"))...)
}

// chosen are the rows of the page, in order: those that match, those that the stream watches, the one that is open first where the page
// is its own.
func (d *queuesData) chosen(v *view, rows []*queueRow, open, own string) []*queueRow {
	if ids := v.query.Get(watchParam); v.live {
		list := strings.Split(ids, "-")
		return slices.DeleteFunc(rows, func(r *queueRow) bool { return !slices.Contains(list, r.ID) })
	}
	order := queueOrders[0]
	for _, o := range queueOrders {
		d.Orders = append(d.Orders, anchor{o.text, v.With("order", o.name)})
		if o.name == d.Order {
			order = o
		}
	}
	d.Order = order.text
	for _, name := range []string{"order", "range", "open"} {
		if value := v.query.Get(name); value != "" {
			d.Keep = append(d.Keep, fact{name, value})
		}
	}
	word := strings.ToLower(d.Filter)
	rows = slices.DeleteFunc(rows, func(r *queueRow) bool {
		return word != "" && r.Name != own && !strings.Contains(strings.ToLower(r.Name), word) && !strings.Contains(r.State, word)
	})
	slices.SortStableFunc(rows, func(a, b *queueRow) int {
		return cmp.Or(oneIf(b.Name == own)-oneIf(a.Name == own), order.compare(a, b), cmp.Compare(a.Name, b.Name))
	})
	d.numbered = v.numbered(len(rows), queuesPerPage)
	return rows[d.From:d.To]
}

// watch lets the stream of a page send the rows that the page has, and no others.
func (v *view) watch(ids []string) {
	if v.live {
		return
	}
	path, _, _ := strings.Cut(v.path, "?")
	if query := queryOf(v.query); len(query) > 0 {
		path += "?" + query.Encode()
	}
	v.path = path
	slices.Sort(ids)
	v.Watch(cmp.Or(strings.Join(ids, "-"), "none"))
}

// queueItem is what the stream sends: a part of the queue that is open.
type queueItem struct {
	What string
	*queueRow
}

// queueItems are the rows that changed. The page itself has put them where they are: they are found by their ids.
func queueItems(v *view) (list []item, err error) {
	if d, ok := v.data.(*queuesData); ok && v.live {
		for _, r := range d.Rows {
			list = append(list, item{r.ID, r})
		}
	}
	return list, nil
}

// queueParts are those of the open row, likewise, but never the form that somebody fills in. Rows of tables and other elements cannot
// be in one message: a browser reads the others as if they were in a table.
func queueParts(v *view) (list []item, err error) {
	if d, ok := v.data.(*queuesData); ok && v.live && d.Open != nil {
		for _, what := range []string{"why", "set", "kinds", "crew"} {
			if what != "set" || v.query.Get("edit") == "" {
				list = append(list, item{"queue-" + what, queueItem{what, d.Open}})
			}
		}
	}
	return list, nil
}

// Frozen reports whether nothing starts anywhere.
func (v *view) Frozen() bool {
	l, err := v.look()
	return err == nil && l.Frozen != nil
}

// Plain is the page's own address without its query.
func (v *view) Plain() string {
	path, _, _ := strings.Cut(v.path, "?")
	return v.app.opts.Prefix + path
}

// Part renders a template with data of its own.
func (v *view) Part(name string, data any) (template.HTML, error) { return v.render(name, data, "") }

// Foot is what the foot of the list says.
func (d *queuesData) Foot() string {
	if d.All <= queuesPerPage && d.Filter == "" {
		return ""
	}
	return d.says(d.More, "queue", "queues")
}

// queryOf is a query without what only streams have.
func queryOf(values url.Values) url.Values {
	values = maps.Clone(values)
	values.Del(watchParam)
	return values
}
