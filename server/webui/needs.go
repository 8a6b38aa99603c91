package webui

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// finding is something that needs someone: what, since when, and the one thing to do.
type finding struct {
	State  string
	Text   template.HTML
	Title  string // what the sentence may be too long to show; of a user
	Since  template.HTML
	Action template.HTML
	weight int
}

// needs is what the overview says first.
type needs struct {
	Head string
	Text template.HTML
	List []finding
	More int
}

// maxNeeds are shown.
const maxNeeds = 8

func loadNeeds(v *view) (any, error) {
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	list, err := v.findings(l)
	if err != nil {
		return nil, err
	}
	n := needs{List: list[:min(len(list), maxNeeds)], More: max(len(list)-maxNeeds, 0)}
	flows := "Nothing runs now."
	if f, err := v.flow("", ""); v.heldBack(err) {
		return nil, err
	} else if err == nil && f.Known {
		sum, in := f.latest()
		if number, unit := rate(sum.Count(pawl.MetricDone), in); unit == "/min" {
			flows = number + " jobs a minute"
		} else {
			flows = number + " jobs an hour"
		}
	} else if l.Live() > 0 {
		flows = strings.ToLower(spelled(l.Live())) + " " + map[bool]string{true: "worker is", false: "workers are"}[l.Live() == 1] + " live"
	} else {
		flows = "no worker is live"
	}
	oldest, _, _ := l.oldest()
	late, other := "job waits", ""
	if oldest > 0 {
		late = "ready job is older than " + age(oldest+99*time.Millisecond)
	}
	if len(list) > 0 {
		other = "other "
	}
	late = "no " + other + late
	switch len(list) {
	case 0:
		n.Head, n.Text = "Nothing needs you.", says(capital(flows)+", and "+late+".")
	case 1:
		n.Head, n.Text = "One thing needs someone.", says("Everything else flows: "+flows+", and "+late+".")
	default:
		n.Head, n.Text = spelled(len(list))+" things need someone.", says("Everything else flows: "+flows+", and "+late+".")
	}
	return n, nil
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// findings are what needs someone, the worst first.
func (v *view) findings(l *look) (list []finding, err error) {
	add := func(f finding) { list = append(list, f) }
	button := func(noun, verb string, pairs ...any) template.HTML {
		if err != nil {
			return ""
		}
		var b template.HTML
		b, err = v.Optional(noun, verb, append(pairs, "class", "s")...)
		return b
	}
	see := func(link, words string) template.HTML {
		if link == "" {
			return ""
		}
		return says(template.HTML(`<a class="btn s" href="`+template.HTMLEscapeString(link)+`">`), words, template.HTML("</a>"))
	}
	if p := l.Frozen; p != nil {
		add(finding{State: "frozen", Text: says("Everything is frozen", byWhom(p), ". No job starts on any queue."),
			Since: says("for ", since(v.Now, p.Since)), Action: button("queue", "unfreeze")})
	}
	for i := range l.Queues {
		q := &l.Queues[i]
		ready := strong(counted(q.Ready))
		wait := " ready jobs wait."
		if q.Ready.Jobs == 1 {
			wait = " ready job waits."
		}
		name := anchoredStrong(v.PageLink("queues", "/queues/{}", q.Name), q.Name)
		switch {
		case q.Ready.Jobs == 0 && q.CoolDown == nil:
		case q.Pause != nil && q.Pause.Scope == pawl.PauseAll:
		case q.Pause != nil:
			add(finding{State: "paused", weight: 40, Text: says("Queue ", name, " is paused", byWhom(q.Pause), ". ", ready, wait),
				Since: says("for ", since(v.Now, q.Pause.Since)), Action: button("queue", "resume", "name", q.Name)})
		case q.CoolDown != nil:
			by, later := v.throttling(q.Name)
			err = errors.Join(err, later)
			add(finding{State: "cooling", weight: 50, Text: coolingText(v.Now, name, q.CoolDown, by), Since: says(left(v.Now, q.CoolDown.Until),
				" left"), Action: button("queue", "reset", "name", q.Name)})
		case q.Workers == 0:
			action := see(v.PageLink("queues", "/queues/{}", q.Name), "See why")
			if action == "" {
				action = see(v.app.link("/jobs", "queue", q.Name, "state", "ready"), "See jobs")
			}
			add(finding{State: "unserved", weight: 10, Text: says("No live worker serves queue ", name, ". ", ready, wait),
				Since: says("for ", since(v.Now, q.Oldest)), Action: action})
		}
	}
	for _, u := range v.app.e.Stats().Unserved {
		if u.Why != "" && !strings.HasPrefix(u.Why, "no live worker serves queue") {
			add(finding{
				State: "unserved", weight: 11, Text: says(strong(counted(pawl.Counted{Jobs: u.Jobs, More: u.More})), " jobs of kind ", strong(u.Kind),
					" wait: ", said(u.Why), "."),
				Since: says("for ", since(v.Now, u.Oldest)), Action: see(v.app.link("/jobs", "kind", u.Kind, "state", "ready"), "See jobs"),
			})
		}
	}
	for _, s := range v.app.e.Stats().Stuck {
		add(finding{
			State: "unserved", weight: 20, Text: says("A handler of ", strong(s.Kind),
				" ignores its cancelled context and keeps its slot."), Since: says("for ", since(v.Now, s.Since)),
			Action: see(v.app.link("/jobs/{}", s.ID), "See the job"),
		})
	}
	if l.Latency > slowStore {
		add(finding{State: "unserved", weight: 60, Text: says("The store is slow: a small question took ", strong(duration(l.Latency)), "."),
			Since: ""})
	}
	err = errors.Join(err, v.deaths(add, see))
	slices.SortStableFunc(list, func(a, b finding) int { return cmp.Compare(a.weight, b.weight) })
	return list, err
}

// coolingText says that a queue cools down, and what kind made it. Where cool-downs are short and follow each other, the end of this one
// says little: the next begins right after.
func coolingText(now time.Time, name template.HTML, c *job.CoolDown, kind string) template.HTML {
	by := template.HTML("")
	if kind != "" {
		by = says(" by ", strong(kind))
	}
	if c.Throttles > 2 && c.Until.Sub(c.Since) < time.Minute {
		return says("Queue ", name, " cools down again and again, throttled ", times(c.Throttles), by, ".")
	}
	return says("Queue ", name, " cools down until ", at(now, c.Until), ", throttled ", times(c.Throttles), by, ".")
}

// throttling is the kind that was throttled most in a queue, in the last hour of the span; empty where that was not counted. The table of
// kinds reads the same.
func (v *view) throttling(queue string) (kind string, err error) {
	m, _, err := v.hour()
	if err != nil {
		if v.heldBack(err) {
			return "", err
		}
		return "", nil // the table of kinds says so
	}
	most := uint64(0)
	for i := range m.Series {
		s := &m.Series[i]
		if s.Queue != queue {
			continue
		}
		n := uint64(0)
		for p := range s.Points {
			n += s.Points[p].Count(pawl.MetricThrottled)
		}
		if n > most {
			most, kind = n, s.Kind
		}
	}
	return kind, nil
}

// Bounds of what is counted for findings about deaths: a page asks no more often, and counts no further.
const (
	countedDeaths = 3 // errors; of others it is only said how many died
	countedDead   = 1000
)

// deaths adds errors of which many jobs died in the span, and says how many of them are dead now: that is what their list has. Where none
// is, somebody has seen to them.
func (v *view) deaths(add func(finding), see func(link, words string) template.HTML) error {
	groups, err := v.failures("")
	if v.heldBack(err) {
		return err
	} // else the panel of failures says so
	many, asked := 0, 0
	for i := range groups {
		g := &groups[i]
		if g.Dead < 5 {
			continue
		}
		now, known := pawl.Counted{}, false
		if asked++; asked <= countedDeaths {
			now, err = v.deadNow(g.Kind, g.Fingerprint)
			if v.heldBack(err) {
				return err
			}
			known = err == nil
		}
		if known && now.Jobs == 0 && !now.More {
			continue
		}
		many++
		still, button := template.HTML(""), "See the dead"
		if known {
			button = "See " + counted(now)
			still = stillDead(now, g.Dead)
		}
		add(finding{
			State: "dead", weight: 30, Text: says(strong(count(g.Dead)), " jobs of kind ", strong(g.Kind), " died", still, ": ", said(g.Message), "."),
			Title: capital(v.span().within()) + ": " + g.Message, Since: says(ago(v.Now, g.Last.Time)),
			Action: see(v.app.link("/jobs/dead", "error", g.Fingerprint, "kind", g.Kind), button),
		})
	}
	if v.query.Get("range") == "" && v.query.Get("from") == "" {
		v.app.died.Store(int64(many))
	}
	return nil
}

// stillDead says how many are dead now where those are fewer than have died: others died before, and would only puzzle.
func stillDead(now pawl.Counted, died uint64) template.HTML {
	if now.More || uint64(now.Jobs) >= died {
		return ""
	}
	return says(" (", strong(counted(now)), " dead now)")
}

// deadNow is how many jobs of a kind are dead now of an error, or of any, whenever they died.
func (v *view) deadNow(kind, fingerprint string) (pawl.Counted, error) {
	f := pawl.Filter{States: []pawl.State{job.Dead}, Kind: kind, Fingerprint: fingerprint}
	return patiently(v, "dead now\n"+kind+"\n"+fingerprint, 2*time.Second, false, func(ctx context.Context) (pawl.Counted, error) {
		return v.app.e.Count(ctx, f, countedDead)
	})
}

// times is how often: once, twice, 4 times.
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return count(n) + " times"
}

func byWhom(p *pawl.Pause) template.HTML {
	text := template.HTML("")
	if p.By != "" {
		text = says(" by ", said(p.By))
	}
	if p.Note != "" {
		text += says(": “", said(p.Note), "”")
	}
	return text
}

func anchoredStrong(link, name string) template.HTML {
	if link == "" {
		return says(strong(name))
	}
	return says(template.HTML(`<a href="`+template.HTMLEscapeString(link)+`">`), strong(name), template.HTML("</a>"))
}
