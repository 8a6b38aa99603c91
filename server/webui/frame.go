package webui

import (
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// nav is the place of a page in the sidebar.
type nav struct {
	label string
	icon  string // of static/icons.svg
	order int    // 10 overview, 20 jobs, 30 queues, 40 cron, 50 workers, 60 limits | 110 services, 120 audit, 130 settings
	child bool   // of the entry before it
	tab   bool   // in the bar of phones too
	key   string // after g
	// count is what stands behind it, such as how many there are; nil: nothing.
	count func(*look) badge
}

// badge is what stands behind an entry.
type badge struct {
	Text, Title string
	Icon, State string // where it is a flag: its glyph and whose colour it has
	Tab         string // only in the bar of phones
}

// entry of the sidebar as it is shown.
type navEntry struct {
	Label, Icon, Link, Key string
	Child, Tab, Current    bool
	Within                 bool // a page below it is open
	Rule                   bool // a line before it
	Badge                  badge
}

// frameRegions are live on every page.
var frameRegions = []region{
	{name: "side", every: 2 * time.Second, class: "nav", load: func(v *view) (any, error) { return v.nav(), nil }},
	{name: "tabbar", every: 2 * time.Second, class: "tabbar", load: func(v *view) (any, error) { return v.nav(), nil }},
	{name: "banner", every: time.Second, load: func(v *view) (any, error) { return v.look() }, fails: "How the store stands", quiet: true},
	{name: "busy", every: time.Second, class: "busy", load: busy, fails: "Operations", quiet: true},
	{name: "foot", every: 5 * time.Second, class: "foot", load: foot, fails: "The store", quiet: true},
}

// nav is the sidebar, with the page that is open marked.
func (v *view) nav() (list []navEntry) {
	l, err := v.look()
	places := make([]*page, 0, len(v.app.pages))
	for i := range v.app.pages {
		if v.app.pages[i].nav.label != "" {
			places = append(places, &v.app.pages[i])
		}
	}
	slices.SortStableFunc(places, func(a, b *page) int { return a.nav.order - b.nav.order })
	for i, p := range places {
		e := navEntry{
			Label: p.nav.label, Icon: p.nav.icon, Link: v.app.link(p.path), Key: p.nav.key, Child: p.nav.child, Tab: p.nav.tab,
			Current: p.name == v.page.name && p.path == v.page.path || v.page.under == p.name && !p.nav.child,
			Rule:    i > 0 && p.nav.order >= 100 && places[i-1].nav.order < 100,
		}
		if err == nil && p.nav.count != nil {
			e.Badge = p.nav.count(l)
		}
		if parent := len(list) - 1; e.Child && e.Current {
			for parent > 0 && list[parent].Child {
				parent--
			}
			list[parent].Within = true
		}
		list = append(list, e)
	}
	return list
}

// footing is what the foot of the sidebar says.
type footing struct {
	Store   string
	Latency time.Duration
	Slow    bool
	Version string
}

func foot(v *view) (any, error) {
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	// In steps, so that it does not change all the time.
	latency := l.Latency.Round(max(time.Millisecond/10, l.Latency/10))
	return footing{v.app.storeName(), latency, l.Latency > slowStore, v.app.opts.Version}, nil
}

// slowStore is when the store's latency needs somebody.
const slowStore = 250 * time.Millisecond

// busy are the operations over many jobs that go on, whoever began them.
func busy(v *view) (any, error) {
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	list := make([]progress, 0, 3)
	for i := range l.Operations {
		if len(list) == 3 {
			break
		}
		o := &l.Operations[i]
		if v.app.told.has(o.ID) {
			continue
		}
		p := progress{ID: o.ID, Open: o.State == pawl.OperationOpen, State: o.State.String(), Text: operationText(o), Reason: o.Reason}
		list = append(list, p)
	}
	return list, nil
}

type progress struct {
	ID                  pawl.ID
	Open                bool
	State, Text, Reason string
}

// SignedIn reports whether there is a session that can be ended.
func (v *view) SignedIn() bool { return v.app.opts.SignOut != nil }

// Name is of this installation.
func (v *view) Name() string { return v.app.opts.Name }

// Asset is the address of a static file.
func (v *view) Asset(name string) string { return v.app.asset(name) }

func (a *app) asset(name string) string {
	return a.opts.Prefix + "/static/" + a.assets.hash + "/" + name
}

// parse reads all templates, with the functions that they share.
func (a *app) parse() *template.Template {
	funcs := template.FuncMap{
		"link": a.link, "asset": a.asset, "show": show, "lines": showBlock, "plain": plain,
		"count": func(n any) string { return countAny(n) }, "counted": counted, "short": short, "plural": plural, "percent": percent,
		"duration": duration, "ago": ago, "due": due, "since": since, "at": at, "atms": atMilli, "bytes": bytesText, "tail": tail,
		"icon": a.icon, "pill": a.pill, "spark": spark, "share": share, "bar": bar, "lower": strings.ToLower,
		"list": func(v ...any) []any { return v },
		"dict": dict, "emphasised": emphasised, "operator": func() auth.Role { return auth.Operator },
		"admin": func() auth.Role { return auth.Admin },
	}
	return template.Must(template.New("").Funcs(funcs).ParseFS(embedded, "*.html"))
}
