package webui

import (
	"fmt"
	"html/template"
	"strconv"
	"time"
)

// span is the time that a page is about.
type span struct {
	From, To time.Time
	Step     time.Duration // of charts
	Name     string        // of the preset; empty for one that was drawn
}

// presets are the ranges of the top bar, chosen by the keys 1 to 6. Metrics are kept by the minute.
var presets = []struct {
	name, text   string
	length, step time.Duration
}{
	{"15m", "15 min", 15 * time.Minute, time.Minute},
	{"1h", "1 h", time.Hour, time.Minute},
	{"6h", "6 h", 6 * time.Hour, 5 * time.Minute},
	{"24h", "24 h", 24 * time.Hour, 20 * time.Minute},
	{"7d", "7 d", 7 * 24 * time.Hour, 2 * time.Hour},
	{"30d", "30 d", 30 * 24 * time.Hour, 8 * time.Hour},
}

// span reads ?range=1h or ?from=…&to=… in milliseconds; without them the last hour.
func (v *view) span() span {
	end := func(step time.Duration) time.Time { return v.Now.Truncate(step).Add(step) } // so that it moves with whole steps
	if from, till := millis(v.query.Get("from")), millis(v.query.Get("to")); !from.IsZero() && till.After(from) &&
		till.Sub(from) <= 60*24*time.Hour {
		return span{From: from, To: till, Step: stepFor(till.Sub(from))}
	}
	name := v.query.Get("range")
	if name == "" && v.app.young.Load() {
		name = "15m"
	}
	for _, p := range presets {
		if p.name == name {
			return span{end(p.step).Add(-p.length), end(p.step), p.step, p.name}
		}
	}
	return span{end(time.Minute).Add(-time.Hour), end(time.Minute), time.Minute, "1h"}
}

// key names what is read of a span. A preset moves with the clock: what was read of it a little earlier will do.
func (s span) key() string {
	if s.Name != "" {
		return s.Name
	}
	return fmt.Sprint(s.From.UnixMilli(), " ", s.To.UnixMilli())
}

func millis(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 32503680000000 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// stepFor makes 60 to 120 points of a length, whole minutes each.
func stepFor(length time.Duration) time.Duration {
	for _, step := range []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, time.Hour,
		2 * time.Hour, 4 * time.Hour} {
		if length/step <= 120 {
			return step
		}
	}
	return 12 * time.Hour
}

// words of a span: "last hour", or its ends.
func (s span) words() string {
	switch s.Name {
	case "1h":
		return "last hour"
	case "":
		return s.From.UTC().Format("2 Jan 15:04") + " to " + s.To.UTC().Format("15:04") + " UTC"
	}
	for _, p := range presets {
		if p.name == s.Name {
			return "last " + p.text
		}
	}
	return ""
}

// within says it after what happened in it: "in the last hour".
func (s span) within() string {
	if s.Name == "" {
		return "from " + s.words()
	}
	return "in the " + s.words()
}

// rangeLink is one of the top bar.
type rangeLink struct {
	Text, Link string
	Key        int
	Current    bool
}

// Ranged reports whether the top bar offers ranges.
func (v *view) Ranged() bool { return v.page.ranges }

// Ranges are those that it offers.
func (v *view) Ranges() (list []rangeLink) {
	now := v.span().Name
	for i, p := range presets {
		list = append(list, rangeLink{p.text, v.With("range", p.name, "from", "", "to", ""), i + 1, p.name == now})
	}
	return list
}

// RangeText is the one that is chosen.
func (v *view) RangeText() string {
	s := v.span()
	for _, p := range presets {
		if p.name == s.Name {
			return p.text
		}
	}
	return duration(s.To.Sub(s.From))
}

// TopExtra is what the page adds to the top bar: its template "{name}-top", if there is one.
func (v *view) TopExtra() (template.HTML, error) {
	if v.app.templates.Lookup(v.page.name+"-top") == nil {
		return "", nil
	}
	return v.render(v.page.name+"-top", v.data, "")
}

// OtherTheme is the theme after the one that is chosen.
func (v *view) OtherTheme() string {
	if v.Prefs.Theme == "dark" {
		return "light"
	}
	return "dark"
}

// Optional is the button of an action, or nothing where there is no such action.
func (v *view) Optional(noun, verb string, pairs ...any) (template.HTML, error) {
	if v.app.action(noun, verb) == nil {
		return "", nil
	}
	return v.Button(noun, verb, pairs...)
}

// PageLink is a link to a page of a noun that may not be there: empty then.
func (v *view) PageLink(name, format string, args ...any) string {
	for i := range v.app.pages {
		if v.app.pages[i].name == name {
			return v.app.link(fmt.Sprint(format), args...)
		}
	}
	return ""
}

// SpanMillis is how long the span is, for the labels of charts.
func (v *view) SpanMillis() int64 { s := v.span(); return s.To.Sub(s.From).Milliseconds() }
