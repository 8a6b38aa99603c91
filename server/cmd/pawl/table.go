package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// table is rows of text under headings.
type table struct {
	head []string
	rows [][]string
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) row(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = clean(fmt.Sprint(cell))
	}
	t.rows = append(t.rows, row)
}

// write aligns the columns by what is in them. A column that is empty throughout is left
// out, except the first.
func (t *table) write(w io.Writer) error {
	widths := make([]int, len(t.head))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, row := range append([][]string{t.head}, t.rows...) {
		line := ""
		for i, cell := range row {
			if widths[i] == 0 && i > 0 && len(t.rows) > 0 {
				continue
			}
			width := max(widths[i], utf8.RuneCountInString(t.head[i]))
			if n == 0 {
				cell = strings.ToUpper(cell)
			}
			line += cell + strings.Repeat(" ", width-utf8.RuneCountInString(cell)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pairs is a list of names and values, one under the other. Empty values are left out.
type pairs struct {
	names, values []string
}

func (p *pairs) add(name string, v any) {
	if text := clean(fmt.Sprint(v)); text != "" {
		p.names, p.values = append(p.names, name), append(p.values, text)
	}
}

// number is add for a number that is left out when it is 0.
func (p *pairs) number(name string, n int64) {
	if n != 0 {
		p.add(name, n)
	}
}

func (p *pairs) write(w io.Writer) error {
	width := 0
	for _, name := range p.names {
		width = max(width, len(name))
	}
	var b strings.Builder
	for i, name := range p.names {
		fmt.Fprintf(&b, "%-*s  %s\n", width, name, p.values[i])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// clean keeps what others wrote from steering the terminal: control characters are shown,
// not sent. It makes one line of several.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // and what turns text around
			return '\uFFFD'
		}
		return r
	}, text)
}

// when is a time as people read it: the clock's, and how far off.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(a.zone).Format("2006-01-02 15:04:05") + " (" + relative(t.Sub(a.now())) + ")"
}

// relative says how far a time is from now.
func relative(d time.Duration) string {
	switch {
	case d > -time.Second && d < time.Second:
		return "now"
	case d < 0:
		return span(-d) + " ago"
	}
	return "in " + span(d)
}

// span is a length of time in its two largest units.
func span(d time.Duration) string {
	d = d.Round(time.Second)
	for _, u := range []struct {
		unit, next    time.Duration
		name, smaller string
	}{{24 * time.Hour, time.Hour, "d", "h"}, {time.Hour, time.Minute, "h", "m"}, {time.Minute, time.Second, "m", "s"}} {
		if d >= u.unit {
			text := fmt.Sprintf("%d%s", d/u.unit, u.name)
			if rest := d % u.unit / u.next; rest > 0 {
				text += fmt.Sprintf("%d%s", rest, u.smaller)
			}
			return text
		}
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// readTime reads a time of a flag: absolute, or from now, such as -2h and +10m.
func (a *app) readTime(flag, text string) (time.Time, error) {
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		if d, err := time.ParseDuration(text); err == nil {
			return a.now().Add(d), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range []string{time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(form, text, a.zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("--%s %q: must be a time such as 2026-01-31T12:00:00Z, \"2026-01-31 12:00\" or -2h", flag, text)
}
