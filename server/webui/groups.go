package webui

import (
	"context"
	"html/template"
	"strconv"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	events "github.com/pawlwork/pawl/stream"
)

// groupsPages are one group; the list of them is a region of Streams.
var groupsPages = []page{{
	path: "/groups/{name}", name: "group", title: "Group", under: "streams", load: loadGroup,
	regions: []region{
		{name: "group-head", every: time.Second, fails: "The group"},
		{name: "group-open", class: "mt", every: 2 * time.Second, fails: "Parked events", load: loadParked},
		{name: "group-members", every: 2 * time.Second, fails: "Members", load: loadMembers},
		{name: "group-parked", every: 2 * time.Second, fails: "Parked events", load: loadParked},
	},
}}

// Bounds of what is listed.
const (
	groupsPerPage  = 25
	membersPerPage = 50
)

// groupRow is a group as a row or a page has it.
type groupRow struct {
	pawl.GroupInfo
	Link string
}

// Lag is how far it is behind.
func (g *groupRow) Lag() pawl.Counted { return pawl.Counted{Jobs: g.Behind, More: g.BehindMore} }

// Retries are events that come again.
func (g *groupRow) Retries() pawl.Counted { return upTo(g.Waiting) }

// GivenUp are events that do not.
func (g *groupRow) GivenUp() pawl.Counted { return upTo(g.Parked) }

// upTo is a number that is counted up to a bound.
func upTo(n int) pawl.Counted { return pawl.Counted{Jobs: n, More: n >= store.MaxGroupCount} }

// Narrow reports whether it reads less than the events of its topics.
func (g *groupRow) Narrow() bool {
	return (&cursorRow{CursorInfo: pawl.CursorInfo{Filter: g.Filter}}).Narrow()
}

// State is how it stands, as a pill has it.
func (g *groupRow) State() string {
	switch {
	case g.Paused:
		return "paused"
	case g.Members == 0:
		return "unserved"
	case g.Parked > 0: // it goes on, but somebody has to see to these
		return "parked"
	case g.Behind == 0 && g.Open == 0 && g.Waiting == 0:
		return "idle"
	}
	return "serving"
}

type groupsData struct {
	Rows  []groupRow
	First string // link to the first page, where this is another
	Next  string
}

// loadStreamGroups reads groups, each with its lag: no more than a thousand events are counted for it.
func loadStreamGroups(v *view) (any, error) {
	after := v.query.Get("group")
	list, err := cached(v, "groups\n"+after, 2*time.Second, func(ctx context.Context) ([]pawl.GroupInfo, error) {
		return v.app.e.Groups(ctx, after, groupsPerPage)
	})
	if err != nil {
		return nil, err
	}
	d := &groupsData{}
	for i := range list {
		d.Rows = append(d.Rows, groupRow{list[i], v.app.link("/groups/{}", list[i].Name)})
	}
	if len(list) == groupsPerPage {
		d.Next = v.With("group", list[len(list)-1].Name)
	}
	if after != "" {
		d.First = v.With("group", "")
	}
	return d, nil
}

// groupData is the page of a group.
type groupData struct {
	groupRow
	Why, Hint template.HTML
	Glyph     string
	Numbers   []kpi
	Audit     string
	Open      *eventOpen // the parked event that is looked at
}

func loadGroup(v *view) (any, error) {
	name := v.params["name"]
	if err := job.CheckText("group", name, 1, events.MaxText); err != nil {
		return nil, err
	}
	v.Title, v.Crumb = plain(name, 80), []anchor{{"Streams", v.app.link("/streams")}}
	info, err := cached(v, "group\n"+name, time.Second, func(ctx context.Context) (pawl.GroupInfo, error) {
		return v.app.e.Group(name).Info(ctx)
	})
	if err != nil {
		return nil, err
	}
	d := &groupData{groupRow: groupRow{info, v.app.link("/groups/{}", name)}, Audit: v.PageLink("audit", "/audit", "target", name)}
	d.Glyph, d.Why = v.groupWhy(&d.groupRow)
	d.Hint = groupHint(&d.groupRow)
	d.Numbers = groupNumbers(&d.groupRow)
	if !v.live && v.query.Get("open") != "" {
		d.Open, err = v.openParked()
	}
	return d, err
}

// groupWhy says how the group stands. What was given up is part of that: nobody handles it before somebody has it replayed.
func (v *view) groupWhy(g *groupRow) (glyph string, why template.HTML) {
	if glyph, why = groupGoes(g); g.Parked == 0 {
		return glyph, why
	}
	parked := says(template.HTML("<b>"), plural(g.GivenUp(), "event", "events"), template.HTML("</b>"), verb(g.Parked, " is", " are"), " parked")
	if glyph == "serving" {
		return "dead", says("It has caught up, but ", parked, ".")
	}
	if g.State() == "parked" {
		glyph = "dead"
	}
	return glyph, why + says(" ", parked, ".")
}

// groupGoes says how far it is with all else.
func groupGoes(g *groupRow) (glyph string, why template.HTML) {
	waits := plural(g.Lag(), "event waits", "events wait")
	members := plural(exactly(g.Members), "member", "members")
	switch {
	case g.Paused && g.Behind > 0:
		return "paused", says("It is paused and takes no more events: ", waits, ".")
	case g.Paused:
		return "paused", says("It is paused and takes no more events. None waits for it.")
	case g.Members == 0 && g.Behind > 0:
		return "unserved", says("No process is a member, and ", waits, ".")
	case g.Members == 0:
		return "idle", says("No process is a member. Nothing waits for it.")
	case g.Behind > 0:
		return "retrying", says("It is ", template.HTML("<b>"), plural(g.Lag(), "event", "events"), template.HTML("</b>"), " behind: ", members,
			verb(g.Members, " works on ", " work on "), count(g.Open), ".")
	case g.Open+g.Waiting > 0:
		return "running", says("It has taken everything: ", members, verb(g.Members, " works on ", " work on "), plural(exactly(g.Open), "event", "events"), ".")
	}
	return "serving", says("It has caught up: nothing waits, ", members, verb(g.Members, " is", " are"), " ready.")
}

// verb is the form of a verb for a number.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// groupHint says what else there is to know.
func groupHint(g *groupRow) template.HTML {
	var words []any
	if g.Waiting > 0 {
		words = append(words, plural(g.Retries(), "event has failed or was given back and comes again. ", "events have failed or were given back and come again. "))
	}
	if g.Parked > 0 {
		words = append(words, "What was given up is listed below, with its reason. Replay gives it to the group again.")
	}
	switch {
	case len(words) > 0:
	case g.Mode == events.Ordered:
		words = append(words, "Events of one topic and key are handled one after another, in their order.")
	case g.Mode == events.FanOut:
		words = append(words, "Each member gets every event; the lag is that of the one that is furthest behind.")
	default:
		words = append(words, "Each event goes to one member. What fails comes again, later each time.")
	}
	return says(words...)
}

func groupNumbers(g *groupRow) []kpi {
	mode := map[events.Mode]string{events.Ordered: "in order by key", events.FanOut: "each gets every event"}[g.Mode]
	if mode == "" {
		mode = "share the events"
	}
	return []kpi{
		{Name: "Behind", Value: counted(g.Lag()), Note: "events not taken yet"},
		{Name: "In flight", Value: count(g.Open), Note: "in handlers now"},
		{Name: "Retries", Value: counted(g.Retries()), Note: "come again"},
		{Name: "Parked", Value: counted(g.GivenUp()), Note: "given up"},
		{Name: "Members", Value: count(g.Members), Note: mode},
	}
}

// memberRow is a member of a group.
type memberRow struct {
	pawl.MemberInfo
	Label, Link string // of its worker
}

type membersData struct {
	Rows    []memberRow
	Ordered bool
	First   string
	Next    string
}

// loadMembers reads who consumes.
func loadMembers(v *view) (any, error) {
	name := v.params["name"]
	after, _ := strconv.ParseInt(v.query.Get("member"), 10, 64) // what is no number is the first page
	list, err := cached(v, "members\n"+name+"\n"+v.query.Get("member"), 2*time.Second, func(ctx context.Context) ([]pawl.MemberInfo, error) {
		return v.app.e.Group(name).Members(ctx, after, membersPerPage)
	})
	if err != nil {
		return nil, err
	}
	d := &membersData{Ordered: v.data.(*groupData).Mode == events.Ordered}
	labels := map[job.WorkerID]string{}
	if l, err := v.look(); err == nil {
		for i := range l.Workers {
			labels[l.Workers[i].ID] = l.Workers[i].Worker.Label
		}
	}
	for i := range list {
		r := memberRow{MemberInfo: list[i], Label: labels[list[i].Worker]}
		if r.Label != "" {
			r.Link = v.PageLink("worker", "/workers/{}", list[i].Worker)
		}
		d.Rows = append(d.Rows, r)
	}
	if len(list) == membersPerPage {
		d.Next = v.With("member", list[len(list)-1].Hand)
	}
	if after != 0 {
		d.First = v.With("member", "")
	}
	return d, nil
}
