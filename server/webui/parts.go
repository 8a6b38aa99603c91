package webui

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// icon is a glyph of the sprite, with a class beside its own.
func (a *app) icon(name string, class ...string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="%s" aria-hidden="true"><use href="%s#%s"/></svg>`,
		template.HTMLEscapeString(strings.TrimSpace("i "+strings.Join(class, " "))), a.asset("icons.svg"), template.HTMLEscapeString(name)))
}

// stateWords are the states as people see them, with their glyph's name; colours are st-{name} in parts.css.
var stateWords = map[string]string{
	"ready": "Ready", "scheduled": "Scheduled", "running": "Running", "suspended": "Suspended", "blocked": "Blocked", "retrying": "Retrying",
	"throttled": "Throttled", "done": "Done", "dead": "Dead", "cancelled": "Cancelled", "skipped": "Skipped", "paused": "Paused",
	"cooling": "Cooling", "unserved": "Unserved", "serving": "Serving", "idle": "Idle", "frozen": "Frozen", "retried": "Retried", "parked": "Parked",
	"lost": "Lost",
}

// pill is glyph, word and colour of a state; "tinted" where it stands alone.
func (a *app) pill(state string, class ...string) template.HTML {
	word := stateWords[state]
	if word == "" {
		word = state
	}
	glyph := state
	switch state {
	case "retried":
		glyph, state = "retrying", "retrying"
	case "parked", "lost":
		glyph, state = "dead", "dead"
	}
	return template.HTML(fmt.Sprintf(`<span class="%s">`, template.HTMLEscapeString(strings.TrimSpace("st st-"+state+" "+strings.Join(class,
		" "))))) +
		a.icon(glyph) + template.HTML(template.HTMLEscapeString(word)+`</span>`)
}

// stateOf is the state of a job as people see it: waiting is never shown, but what it waits for.
func stateOf(j *pawl.JobRecord, now time.Time) string {
	if j.State != job.Waiting {
		return j.State.String()
	}
	switch due := !j.Due.After(now); {
	case due:
		return "ready"
	case j.Throttles() > 0:
		return "throttled"
	case !j.Failures.None():
		return "retrying"
	}
	return "scheduled"
}

// share is how much of something is used: a bar and words. Full is amber, no capacity a dashed line.
func share(used, of int) template.HTML {
	class, width := "share", 0.0
	switch {
	case of <= 0:
		class += " none"
	case used >= of:
		class, width = "share full", 100
	default:
		width = float64(used) / float64(of) * 100
	}
	return template.HTML(fmt.Sprintf(`<span class="%s">%s<span class="v">%s of %s</span></span>`, class, bar(width), count(used), count(of)))
}

// bar is a bar of its element's width, so many percent of which are filled.
func bar(percent float64) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="bar" aria-hidden="true"><rect class="t" width="100%%" height="100%%"/>`+
		`<rect class="u" width="%s%%" height="100%%"/></svg>`,
		decimal(min(max(percent, 0), 100))))
}

// dict makes the data of a template: names and values.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[text(pairs[i])] = pairs[i+1]
	}
	return m
}

func countAny(n any) string {
	switch n := n.(type) {
	case int:
		return count(n)
	case int64:
		return count(n)
	case uint64:
		return count(n)
	case pawl.Counted:
		return counted(n)
	}
	return text(n)
}

// emphasised is our own text with **words** that stand out and `code`.
func emphasised(s string) template.HTML {
	s = template.HTMLEscapeString(s)
	for mark, tag := range map[string]string{"**": "b", "`": "code"} {
		for {
			before, rest, ok := strings.Cut(s, mark)
			within, after, closed := strings.Cut(rest, mark)
			if !ok || !closed {
				break
			}
			s = before + "<" + tag + ">" + within + "</" + tag + ">" + after
		}
	}
	return template.HTML(s)
}

// sorted are the names of a set.
func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
