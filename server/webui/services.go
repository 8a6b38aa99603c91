package webui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/supervise"
)

// servicesPages are the loops of this process.
var (
	servicesPages = []page{{
		path: "/services", name: "services", title: "Services", load: loadServices,
		nav:     nav{label: "Services", icon: "n-serv", order: 110, key: "v"},
		regions: []region{{name: "services-now", every: 2 * time.Second, fails: "Services"}},
	}}
	serviceActions = []action{{noun: "service", verb: "run", role: auth.Admin, label: "Run once", class: "s", do: runRound}}
)

// rounds are those of upkeep, and what each is for.
var rounds = []struct{ Name, Text string }{
	{"rescue", "takes back the jobs of workers that are lost"},
	{"expire", "ends jobs that are past their deadline"},
	{"intents", "does what other jobs left to be done"},
	{"operations", "goes on with what was begun over many jobs"},
	{"purge", "removes what is kept no longer"},
	{"rollup", "merges old minutes of metrics into hours"},
	{"unserved", "looks for jobs that no worker takes"},
	{"gates", "lets jobs through that wait behind limits"},
}

// loops are the other services of an engine.
var loops = map[string]string{
	"beat": "tells the cluster that this process lives", "finish": "writes what jobs came to", "claim": "takes jobs",
	"note": "writes progress and logs", "watch": "looks for handlers that do not stop", "settings": "follows what is declared and set",
	"schedules": "fires schedules that are due",
	"metrics":   "writes what was counted", "listen": "hears of what changes in the store",
}

// servicesData is the tree of services.
type servicesData struct {
	Groups                 []serviceGroup
	Leader                 *pawl.WorkerInfo
	Leads                  bool // this process does
	Here                   string
	Failing, Count, Errors int
	Runs                   bool // the engine runs in this process
	Rest                   []struct{ Name, Text string }
}

// serviceGroup is the services with one name before the slash.
type serviceGroup struct {
	Name     string
	Services []serviceRow
}

// serviceRow is one loop.
type serviceRow struct {
	supervise.Status
	Short     string
	Text      string
	Round     bool // of upkeep: it can be run by hand
	Unfolded  bool
	ShardLink string
}

func loadServices(v *view) (any, error) {
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	d := &servicesData{}
	here := v.app.e.Stats().Worker
	leader := leaderOf(l.Workers)
	for i := range l.Workers {
		w := &l.Workers[i]
		if w.ID == leader && leader != 0 {
			d.Leader = w
		}
		if w.ID == here && here != 0 {
			d.Here = w.Worker.Label
		}
	}
	d.Leads = leader != 0 && leader == here
	known := map[string]bool{}
	for _, s := range v.app.e.Services(v.ctx) {
		group, short, grouped := strings.Cut(s.Name, "/")
		if !grouped {
			group, short = "", s.Name
		}
		r := serviceRow{Status: s, Short: short, Text: loops[s.Name], Unfolded: v.query.Get("shards") == s.Name}
		if i := slices.IndexFunc(rounds, func(r struct{ Name, Text string }) bool { return r.Name == short }); group == "keeper" && i >= 0 {
			r.Round, r.Text, known[short] = true, rounds[i].Text, true
		}
		if len(s.Shards) > 0 {
			r.ShardLink = v.With("shards", s.Name)
			if r.Unfolded {
				r.ShardLink = v.With("shards", "")
			}
		}
		if r.Bad() {
			d.Failing++
		}
		d.Count++
		i := slices.IndexFunc(d.Groups, func(g serviceGroup) bool { return g.Name == group })
		if i < 0 {
			d.Groups = append(d.Groups, serviceGroup{Name: group})
			i = len(d.Groups) - 1
		}
		d.Groups[i].Services = append(d.Groups[i].Services, r)
	}
	d.Runs = d.Count > 0
	for _, r := range rounds {
		if !known[r.Name] {
			d.Rest = append(d.Rest, r)
		}
	}
	return d, nil
}

// Bad reports whether its last run failed.
func (r *serviceRow) Bad() bool {
	return r.State == supervise.StateFailed || r.State == supervise.StateRestarting || r.LastErrorAt.After(r.LastSuccess)
}

// Icon and Class are of its state.
func (r *serviceRow) Icon() string {
	switch {
	case r.Bad():
		return "unserved"
	case r.State == supervise.StateRunning:
		return "running"
	case r.State == supervise.StateWaiting:
		return "serving"
	}
	return "idle"
}

// Class is the colour of its state.
func (r *serviceRow) Class() string {
	switch r.Icon() {
	case "unserved":
		return "dead"
	case "running", "serving":
		return "serving"
	}
	return "idle"
}

// Word is its state.
func (r *serviceRow) Word() string {
	if r.Bad() && (r.State == supervise.StateWaiting || r.State == supervise.StateRunning) {
		return "Failing"
	}
	word := string(r.State)
	return strings.ToUpper(word[:1]) + word[1:]
}

// LastOK is its last success, in steps: one that runs each second is no news.
func (r *serviceRow) LastOK(now time.Time) time.Time {
	if now.Sub(r.LastSuccess) < lateBeat {
		return time.Time{}
	}
	return r.LastSuccess
}

// runRound runs a round of upkeep by hand, and says what it did.
func runRound(a *act) (*outcome, error) {
	round := a.get("round")
	report, err := a.app.e.Upkeep(a.ctx, round)
	if err != nil {
		return nil, err
	}
	out := &outcome{Text: fmt.Sprintf("%s ran for %s and found nothing to do.", round, duration(report.Took))}
	if len(report.Did) > 0 {
		var did []string
		for _, one := range report.Did {
			did = append(did, fmt.Sprintf("%s %s", count(one.N), one.What))
		}
		out.Text = fmt.Sprintf("%s ran for %s: %s.", round, duration(report.Took), enumerate(did, "and"))
	}
	if report.More {
		out.More = "There is more to do: it goes on by itself, or run it again."
	}
	return out, nil
}
