package webui

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// settingsPages is what this browser chose, what operators changed, and what the server was told.
var (
	settingsPages = []page{{
		path: "/settings", name: "settings", title: "Settings", nav: nav{label: "Settings", icon: "n-set", order: 130}, load: loadSettings,
		regions: []region{{name: "settings-changed", every: 5 * time.Second, load: loadChanged, fails: "What operators changed"}},
	}}
	settingsActions []action
)

// Setting is one of the server's own settings, for people: nothing secret is in it.
type Setting struct{ Name, Value, Source string }

// settingsData is all that does not change by itself.
type settingsData struct {
	Choices  []preference
	Settings []Setting
	Tokens   []tokenRow
	HasFile  bool // there is a token file
}

// preference is something that a browser can choose.
type preference struct {
	Name, Hint string
	Options    []preferred
}

type preferred struct {
	Text, Link, Zone string
	Current          bool
}

// tokenRow is who may sign in.
type tokenRow struct {
	auth.Token
	Expired, You bool
}

func loadSettings(v *view) (any, error) {
	d := &settingsData{Settings: v.app.opts.Settings}
	p := v.Prefs
	offer := func(label, hint, name, now string, pairs ...string) {
		c := preference{Name: label, Hint: hint}
		for i := 0; i+1 < len(pairs); i += 2 {
			to := url.Values{name: {pairs[i]}, "back": {v.app.link("/settings")}}
			o := preferred{Text: pairs[i+1], Link: v.app.link("/prefs") + "?" + to.Encode(), Current: now == pairs[i]}
			if name == "zone" {
				o.Zone = pairs[i]
			}
			c.Options = append(c.Options, o)
		}
		d.Choices = append(d.Choices, c)
	}
	offer("Theme", "t switches between light and dark.", "theme", p.Theme, "", "As the system", "light", "Light", "dark", "Dark")
	offer("Time zone", "Tooltips always have both.", "zone", p.Zone, "local", "Local", "utc", "UTC")
	offer("Density", "", "density", p.Density, "", "Normal", "dense", "Dense")
	sizes := slices.Sorted(slices.Values(pageSizes))
	var pairs []string
	for _, n := range sizes {
		pairs = append(pairs, fmt.Sprint(n), fmt.Sprint(n))
	}
	offer("Rows of a page", "", "size", fmt.Sprint(p.Size), pairs...)
	keys := "off"
	if p.Keys {
		keys = "on"
	}
	hint := "? lists them. Off, they do nothing: for who speaks to the computer, or types by accident."
	offer("Single keys", hint, "keys", keys, "on", "On", "off", "Off")
	d.HasFile = v.app.opts.Tokens != nil
	if v.Can(auth.Admin) && d.HasFile {
		for _, t := range v.app.opts.Tokens() {
			d.Tokens = append(d.Tokens, tokenRow{t, !t.Expires.IsZero() && !v.Now.Before(t.Expires), t.Name == v.id.Name})
		}
	}
	return d, nil
}

// changed is one thing that operators have set over what code declares.
type changed struct {
	Noun, Name, Link string
	Fields           string
	By, Note         string
	Since            time.Time
	Conflicts        int
}

// changedData is what holds in the whole cluster.
type changedData struct {
	List     []changed
	Versions []pawl.VersionInfo
	Queues   int
	Limits   int
	Cron     int
}

func loadChanged(v *view) (any, error) {
	s, err := cached(v, "settings", 2*time.Second, func(ctx context.Context) (pawl.Settings, error) { return v.app.e.Settings(ctx) })
	if err != nil {
		return nil, err
	}
	d := &changedData{Versions: slices.Clone(s.Versions), Queues: len(s.Queues), Limits: len(s.Limits), Cron: len(s.Schedules)}
	add := func(noun, name, link string, fields []string, by, note string, since time.Time, conflicts int) {
		if len(fields) > 0 || conflicts > 0 {
			d.List = append(d.List, changed{noun, name, link, strings.Join(fields, ", "), by, note, since, conflicts})
		}
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		add("queue", q.Name, v.app.link("/queues/{}", q.Name), q.Overridden, q.By, q.Note, q.Since, len(q.Conflicts))
	}
	for i := range s.Limits {
		l := &s.Limits[i]
		add("limit", l.Name, v.app.link("/limits"), l.Overridden, l.By, l.Note, l.Since, len(l.Conflicts))
	}
	for i := range s.Schedules {
		c := &s.Schedules[i]
		add("schedule", c.Name, v.app.link("/cron/{}", c.Name), c.Overridden, c.By, c.Note, c.Since, len(c.Conflicts))
	}
	for i := range s.Upkeep {
		u := &s.Upkeep[i]
		add("upkeep", u.Round, v.app.link("/services"), []string{"every " + duration(u.Every)}, u.By, u.Note, u.Since, 0)
	}
	for i := range s.Pauses {
		p := &s.Pauses[i]
		link := v.app.link("/queues/{}", p.Name)
		if p.Scope.String() == "kind" {
			link = v.app.link("/jobs", "kind", p.Name)
		}
		add(p.Scope.String(), cmp.Or(p.Name, "everything"), link, []string{"paused"}, p.By, p.Note, p.Since, 0)
	}
	slices.SortStableFunc(d.List, func(a, b changed) int { return b.Since.Compare(a.Since) })
	d.List = d.List[:min(len(d.List), 200)]
	slices.SortStableFunc(d.Versions, func(a, b pawl.VersionInfo) int { return b.Seen.Compare(a.Seen) })
	d.Versions = d.Versions[:min(len(d.Versions), 20)]
	return d, nil
}
