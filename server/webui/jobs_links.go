package webui

import (
	"net/url"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// orderLink is a way to sort the list.
type orderLink struct {
	Text, Link string
	Current    bool
}

// pages are the links to the pages before and behind. Cursors only go forward: the way back is kept in the address.
func (d *jobsData) pages(v *view, page *listed, after string) {
	trail := v.query.Get("before")
	with := func(after, before string) string {
		values := d.Query.values()
		if after != "" {
			values.Set("after", after)
		}
		if before != "" {
			values.Set("before", before)
		}
		text := v.app.link(d.View.Path)
		if len(values) > 0 {
			text += "?" + values.Encode()
		}
		return text
	}
	if page.Next != "" {
		way := after
		if after == "" {
			way = "-"
		}
		if trail != "" {
			way = trail + "." + way
		}
		steps := strings.Split(way, ".")
		d.Next = with(page.Next, strings.Join(steps[max(len(steps)-8, 0):], "."))
	}
	if after != "" {
		steps := strings.Split(trail, ".")
		before := steps[len(steps)-1]
		if before == "-" {
			before = ""
		}
		d.Newer = with(before, strings.Join(steps[:len(steps)-1], "."))
	}
	orders := []orderLink{{Text: "Newest first", Current: d.Query.Order == store.ByID}}
	if view := d.View; view.order == store.ByDue || view.order == store.ByFinish {
		text := map[bool]string{true: "Due first", false: "Last ended first"}[view.order == store.ByDue]
		if view.Name == "dead" {
			text = "Last died first"
		}
		orders = append([]orderLink{{Text: text, Current: d.Query.Order == view.order}}, orders...)
	}
	for i := range orders {
		other := *d.Query
		if other.Order = d.View.order; i > 0 || len(orders) == 1 {
			other.Order = store.ByID
		}
		orders[i].Link = v.app.address(&other)
	}
	d.Orders = orders
	asks := d.Query.values()
	asks.Set("view", d.Query.View)
	d.Asks = asks.Encode()
}

// viewLink is one of the views, with how many jobs it has.
type viewLink struct {
	Text, State, Link, Count string
	Current                  bool
}

func loadViews(v *view) (any, error) {
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	d := v.data.(*jobsData)
	counts := map[string]pawl.Counted{
		"": l.All, "ready": l.Ready, "scheduled": l.Scheduled, "running": l.Running, "retries": l.Retries,
		"suspended": l.States[job.Suspended], "done": l.States[job.Done], "dead": l.States[job.Dead], "cancelled": l.States[job.Cancelled],
	}
	var list []viewLink
	for i := range jobsViews {
		other := *d.Query
		other.View, other.Order = jobsViews[i].Name, jobsViews[i].order
		link := viewLink{Text: jobsViews[i].Text, State: jobsViews[i].State, Link: v.app.address(&other),
			Current: jobsViews[i].Name == d.Query.View}
		if !d.Query.narrow() { // a number beside a filter that it does not know would lie
			link.Count = counted(counts[jobsViews[i].Name])
		}
		list = append(list, link)
	}
	return list, nil
}

// newer is how many jobs came since the list was read.
func loadNewer(v *view) (any, error) {
	d := v.data.(*jobsData)
	q := d.Query
	if !v.live || len(d.ids) == 0 || v.query.Get("after") != "" || q.Text != "" || q.Order == store.ByDue {
		return "", nil
	}
	first, err := v.app.e.Store().Get(v.ctx, d.ids[:1])
	if err != nil || len(first) == 0 {
		return "", err
	}
	f := q.filter(v.Now)
	if q.Order == store.ByFinish {
		f.FinishedAfter = first[0].Finished.Add(time.Microsecond)
	} else {
		f.CreatedAfter = first[0].Created.Add(time.Microsecond)
	}
	n, err := v.app.e.Count(v.ctx, f, 1000)
	if err != nil || n.Jobs == 0 {
		return "", err
	}
	return counted(n), nil
}

// Values are those of the query, for the form.
func (q *jobsQuery) Values() url.Values { return q.values() }

// CreatedText is the bound of the time of creation.
func (d *jobsData) CreatedText() string { return createdWords[d.Query.Created] }

// CreatedLinks bound the time of creation.
func (v *view) CreatedLinks() (list []orderLink) {
	q := v.data.(*jobsData).Query
	for _, name := range []string{"", "1h", "24h", "7d", "30d"} {
		other := *q
		other.Created = name
		text := "Created at any time"
		if name != "" {
			text = "Created in the " + createdWords[name]
		}
		if name == "" && q.Text != "" {
			continue
		}
		list = append(list, orderLink{text, v.app.address(&other), q.Created == name})
	}
	return list
}

// Here0 is the first page of the list.
func (v *view) Here0() string { return v.app.address(v.data.(*jobsData).Query) }

// Suggestions are names of queues and kinds that are known, for the filter.
func (v *view) Suggestions() (list []string) {
	l, err := v.look()
	if err != nil {
		return nil
	}
	for i := range l.Queues {
		list = append(list, "queue:"+l.Queues[i].Name)
	}
	if known, _, err := v.kinds(); err == nil {
		for i := range known {
			list = append(list, "kind:"+known[i].Kind)
		}
	}
	return list[:min(len(list), 100)]
}
