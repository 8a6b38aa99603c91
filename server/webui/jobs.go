package webui

import (
	"cmp"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// jobsRegions are those of every view.
var jobsRegions = []region{
	{name: "views", every: 2 * time.Second, load: loadViews},
	{name: "strip", every: 5 * time.Second, fails: "Metrics", load: loadStrip},
	{name: "groups", every: 10 * time.Second, fails: "Failures", load: loadGroups},
	{name: "newer", every: 2 * time.Second, load: loadNewer},
	{name: "rows", every: time.Second, tag: "tbody", items: loadRows},
}

var jobsPages = []page{
	{path: "/jobs", name: "jobs", title: "Jobs", load: loadJobs, regions: jobsRegions, ranges: false,
		nav: nav{label: "Jobs", icon: "n-jobs", order: 20, tab: true, key: "j", count: func(l *look) badge { return badge{Text: short(l.All)} }}},
	{path: "/jobs/scheduled", name: "jobs", title: "Scheduled jobs", load: loadJobs, regions: jobsRegions,
		nav: nav{label: "Scheduled", order: 21, child: true, key: "s", count: func(l *look) badge { return badge{Text: short(l.Scheduled)} }}},
	{path: "/jobs/retries", name: "jobs", title: "Retries", load: loadJobs, regions: jobsRegions,
		nav: nav{label: "Retries", order: 22, child: true, key: "r", count: func(l *look) badge { return badge{Text: short(l.Retries)} }}},
	{path: "/jobs/dead", name: "jobs", title: "Dead jobs", load: loadJobs, regions: jobsRegions,
		nav: nav{label: "Dead", order: 23, child: true, key: "d", count: func(l *look) badge { return badge{Text: short(l.States[job.Dead])} }}},
}

// jobsData is a page of the list.
type jobsData struct {
	Query   *jobsQuery
	View    *jobsView
	Chips   []chip
	Rows    []row
	Old     bool // not the first page
	Next    string
	Newer   string
	Foot    string
	Empty   bool
	Fresh   bool // there are no jobs at all
	Orders  []orderLink
	Asks    string // the query of bulk actions
	Columns columns
	ids     []pawl.ID
}

// columns are what a view shows beside kind, detail, queue, key and attempts.
type columns struct {
	State, Worker bool
	Detail        string
	Time, Last    string // heads of the last two
	of            job.State
	only          bool // all are in the state of
}

// left reports whether a job was in the list when the page was opened, and is in another state now: rows never go by themselves.
func (c *columns) left(j *pawl.JobRecord) bool { return c.only && j.State != c.of }

func columnsOf(view string) columns {
	c := columns{Detail: "Detail", Time: "Time", Last: "Created"}
	switch view {
	case "":
		c.State = true
	case "scheduled":
		c.Time, c.Detail = "Due", "Arguments"
	case "retries":
		c.Time, c.Detail = "Due", "Last error"
		c.of, c.only = job.Waiting, true
	case "dead":
		c.Time, c.Last, c.Detail = "Lived", "Died", "Last error"
		c.of, c.only = job.Dead, true
	case "cancelled":
		c.Time, c.Last = "Lived", "Ended"
		c.of, c.only = job.Cancelled, true
	case "running":
		c.Worker, c.Time = true, "Runs"
	case "done":
		c.Time, c.Last = "Took", "Ended"
	case "ready":
		c.Time = "Waits"
	}
	return c
}

func (v *view) barePath() string {
	path, _, _ := strings.Cut(v.path, "?")
	return path
}

func loadJobs(v *view) (any, error) {
	if typed := strings.TrimSpace(v.query.Get("f")); v.query.Has("f") {
		return v.filtered(typed)
	}
	q := readJobs(v.barePath(), v.query)
	q.hidden = v.Hidden()
	d := &jobsData{Query: q, View: q.view(), Columns: columnsOf(q.View), Chips: q.chips()}
	v.Title = d.View.Title
	if v.live {
		d.ids = unpackIDs(v.query.Get(watchParam))
		return d, nil
	}
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	after := v.query.Get("after")
	d.Old = after != ""
	page, err := v.app.list(v.ctx, q, l, v.Now, after, v.Prefs.Size)
	if err != nil {
		return nil, err
	}
	if d.Rows, err = v.rows(page.Jobs, d.Columns); err != nil {
		return nil, err
	}
	for i := range page.Jobs {
		d.ids = append(d.ids, page.Jobs[i].ID)
	}
	v.Watch(packIDs(d.ids))
	d.pages(v, page, after)
	d.Empty, d.Fresh = len(d.Rows) == 0, l.All.Jobs == 0
	for i := range d.Chips {
		c := &d.Chips[i]
		c.Without = v.app.address(q.without(c.Name))
		if c.Name == "error" && d.Empty {
			c.Text = cmp.Or(v.errorMessage(q.Error), c.Text)
		}
		if c.Name == "error" && len(page.Jobs) > 0 {
			if last, ok := page.Jobs[0].Failures.Last(); ok {
				c.Text = last.Message
			}
		}
		if d.Empty && !d.Fresh && q.Text == "" {
			if n, err := v.app.e.Count(v.ctx, q.without(c.Name).filter(v.Now), 1000); err == nil {
				c.Count = counted(n)
			}
		}
	}
	return d, d.foot(v, page)
}

// filtered is where the filter leads that somebody typed.
func (v *view) filtered(typed string) (any, error) {
	values := v.query
	values.Del("f")
	q := readJobs(v.barePath(), values)
	for _, word := range words(typed) {
		if id, ok := strings.CutPrefix(word, "id:"); ok {
			return elsewhere(v.app.link("/find", "q", id)), nil
		}
	}
	if _, err := pawl.ParseID(typed); err == nil {
		return elsewhere(v.app.link("/jobs/{}", typed)), nil
	}
	return elsewhere(v.app.address(q.typed(typed))), nil
}

// foot says how many there are, and what it cost to find these.
func (d *jobsData) foot(v *view, page *listed) error {
	if len(page.Jobs) == 0 && !page.Stopped {
		return nil
	}
	shown := count(len(page.Jobs))
	var text string
	switch {
	case page.Next == "" && !d.Old:
		text = "All " + shown + " that match."
		if len(page.Jobs) == 1 {
			text = "The only one that matches."
		}
	case d.Query.Text != "" || d.Query.View == "retries" || len(page.Jobs) == 0:
		text = shown + " found."
	default:
		n, err := v.app.e.Count(v.ctx, d.Query.filter(v.Now), 0)
		if err != nil {
			return err
		}
		text = footCount(len(page.Jobs), n, page.Stopped, !d.Old && d.Query.Order == store.ByID)
	}
	if page.Looked > len(page.Jobs) {
		text += " Searched " + count(page.Looked) + " rows"
		if page.Stopped {
			text += ", stopped early: others may match"
		}
		text += "."
	} else if page.Stopped {
		next := "Older"
		if d.Query.Order == store.ByDue {
			next = "Later"
		}
		text += " “" + next + "” looks further."
	}
	d.Foot = text + " Read in " + duration(page.Took) + "."
	return nil
}

// footCount says how many of how many are shown. A count that reached its most has more; one that ended early, at a bound of rows, knows
// only of some, and says nothing where those are on the page. Of a page that ended early it is not said that they are the newest.
func footCount(shown int, n pawl.Counted, stopped, newest bool) string {
	text := count(shown)
	switch {
	case n.More && n.Jobs >= store.MaxCounted:
		text += " of more than " + count(n.Jobs)
	case n.More && n.Jobs > shown:
		text += " of at least " + count(n.Jobs)
	case !n.More:
		text += " of " + count(n.Jobs)
	}
	switch {
	case stopped:
		text += " shown"
	case newest:
		text = "Newest " + text
	}
	return text + "."
}
