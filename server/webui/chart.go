package webui

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
)

// plot is a chart as the server draws it: at its final size, readable without JavaScript. charts.js puts uPlot over it, with the same
// scales and colours. Percentages place text and marks; a nested drawing that is stretched holds the lines.
type plot struct {
	Class  string // h1..h4: how high it is
	Label  string // for who cannot see it
	Series []series
	Stack  bool // bars on top of each other instead of lines
	Log    bool
	Low    float64 // of the scale
	High   float64
	Ticks  []tick
	Times  []tick // below it
	Marks  []tick // dashed, such as where a version began
	Ends   bool   // labels at the ends of lines
	Data   string // JSON for charts.js; empty: it leaves the drawing alone
}

// points is what charts.js gets.
type points struct {
	X      []int64      `json:"x"` // milliseconds
	S      [][]*float64 `json:"s"`
	Names  []string     `json:"names"`
	Colors []string     `json:"colors"`
	Low    float64      `json:"low"`
	High   float64      `json:"high"`
	Log    bool         `json:"log,omitempty"`
	Bars   bool         `json:"bars,omitempty"`
	Unit   string       `json:"unit,omitempty"`
}

// over lets charts.js put a crosshair over it: steps begin at these times; unit is "s" or empty for counts.
func (p *plot) over(times []time.Time, unit string) {
	d := points{Low: p.Low, High: p.High, Log: p.Log, Bars: p.Stack, Unit: unit}
	for _, t := range times {
		d.X = append(d.X, t.UnixMilli())
	}
	for _, s := range p.Series {
		line := make([]*float64, len(s.Points))
		for i, v := range s.Points {
			if !math.IsNaN(v) {
				v = math.Round(v*1e6) / 1e6
				line[i] = &v
			}
		}
		d.S, d.Names, d.Colors = append(d.S, line), append(d.Names, s.Name), append(d.Colors, s.Class)
	}
	text, _ := json.Marshal(d) // of numbers and our own names
	p.Data = string(text)
}

// series is one line; NaN where there is nothing.
type series struct {
	Name, Class string // Class: done, retry, dead, cool, p50, p95, p99
	Area        bool
	Points      []float64
}

// tick is a place on an axis, in percent.
type tick struct {
	At   float64
	Text string
	Time time.Time
	Left bool // its text is left of it
}

// Bounds of the labels of marks.
const (
	maxMark  = 34  // runes
	markRune = 1.5 // percent of a chart that a rune takes, where it is as narrow as a phone's
)

// reach is where the label of a mark begins and ends, in percent.
func (t *tick) reach() (from, to float64) {
	width := 2 + markRune*float64(min(len([]rune(t.Text)), maxMark))
	if t.Left {
		return t.At - width, t.At
	}
	return t.At, t.At + width
}

// apart keeps the labels of marks, which are in the order of time, off each other and within the chart: near ones become one label at the
// first of their lines, and one that does not fit right of its line goes left of it.
func apart(marks []tick) []tick {
	type label struct {
		first int
		texts []string
	}
	var labels []label
	write := func(l *label) {
		m := &marks[l.first]
		m.Text = strings.Join(l.texts, ", ")
		if len(l.texts) > 2 {
			m.Text = fmt.Sprintf("%s and %d more", l.texts[0], len(l.texts)-1)
		}
		m.Left = false
		_, to := m.reach()
		m.Left = to > 100
	}
	for i := range marks {
		if marks[i].Text == "" {
			continue
		}
		labels = append(labels, label{i, []string{plain(marks[i].Text, 16)}})
		write(&labels[len(labels)-1])
		for n := len(labels) - 1; n > 0; n-- {
			before, last := &labels[n-1], &labels[n]
			_, end := marks[before.first].reach()
			if begin, _ := marks[last.first].reach(); begin >= end {
				break
			}
			marks[last.first].Text, marks[last.first].Left = "", false
			for _, text := range last.texts {
				if !slices.Contains(before.texts, text) {
					before.texts = append(before.texts, text)
				}
			}
			labels = labels[:n]
			write(before)
		}
	}
	return marks
}

// y is where a value is, in percent from above.
func (p *plot) y(v float64) float64 {
	low, high := p.Low, p.High
	if p.Log {
		v, low, high = math.Log10(math.Max(v, low)), math.Log10(low), math.Log10(high)
	}
	return 100 - min(max((v-low)/(high-low), 0), 1)*100
}

// SVG draws it.
func (p *plot) SVG() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot %s" role="img" aria-label="%s"`, p.Class, template.HTMLEscapeString(p.Label))
	if p.Data != "" {
		b.WriteString(` data-chart="` + template.HTMLEscapeString(p.Data) + `"`)
	}
	b.WriteByte('>')
	for i, t := range p.Ticks {
		class := "gr"
		if i == len(p.Ticks)-1 {
			class = "ax"
		}
		fmt.Fprintf(&b, `<line class="%s" x1="0" x2="100%%" y1="%[2]s%%" y2="%[2]s%%"/>`+
			`<text x="-7" y="%[2]s%%" dy=".32em" text-anchor="end">%[3]s</text>`,
			class, decimal(t.At), template.HTMLEscapeString(t.Text))
	}
	for _, m := range p.Marks {
		fmt.Fprintf(&b, `<line class="mk" x1="%[1]s%%" x2="%[1]s%%" y1="0" y2="100%%"/>`, decimal(m.At))
		if m.Text != "" {
			side := `dx="5"`
			if m.Left {
				side = `dx="-5" text-anchor="end"`
			}
			fmt.Fprintf(&b, `<text x="%s%%" y="0" %s dy=".9em">%s</text>`, decimal(m.At), side, template.HTMLEscapeString(plain(m.Text, maxMark)))
		}
	}
	if p.Stack {
		p.bars(&b)
	} else {
		p.lines(&b)
	}
	for i, t := range p.Times {
		anchor := "middle"
		switch i {
		case 0:
			anchor = "start"
		case len(p.Times) - 1:
			anchor = "end"
		}
		fmt.Fprintf(&b, `<text x="%s%%" y="100%%" dy="15" text-anchor="%s" data-ms="%d">%s</text>`, decimal(t.At), anchor, t.Time.UnixMilli(),
			template.HTMLEscapeString(t.Text))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func (p *plot) lines(b *strings.Builder) {
	b.WriteString(`<svg width="100%" height="100%" viewBox="0 0 100 100" preserveAspectRatio="none">`)
	for _, s := range p.Series {
		line, area := p.path(s.Points)
		if s.Area && area != "" {
			fmt.Fprintf(b, `<path class="f-tint" d="%s"/>`, area)
		}
		fmt.Fprintf(b, `<path class="ln l-%s" d="%s"/>`, s.Class, line)
	}
	b.WriteString("</svg>")
	if !p.Ends {
		return
	}
	taken := -100.0
	for i := len(p.Series) - 1; i >= 0; i-- { // from the top
		if v, ok := last(p.Series[i].Points); ok {
			at := max(p.y(v), taken+9)
			taken = at
			fmt.Fprintf(b, `<text x="100%%" dx="6" y="%s%%" dy=".32em">%s</text>`, decimal(at), p.Series[i].Name)
		}
	}
}

// last is the last value that there is.
func last(points []float64) (float64, bool) {
	for i := len(points) - 1; i >= 0; i-- {
		if !math.IsNaN(points[i]) {
			return points[i], true
		}
	}
	return 0, false
}

func (p *plot) path(points []float64) (line, area string) {
	var l, a strings.Builder
	open, first := false, 0.0
	x := func(i int) float64 { return float64(i) / float64(max(len(points)-1, 1)) * 100 }
	for i, v := range points {
		if math.IsNaN(v) {
			if open {
				fmt.Fprintf(&a, "L%s 100L%s 100Z", decimal(x(i-1)), decimal(first))
			}
			open = false
			continue
		}
		letter := "L"
		if !open {
			letter, open, first = "M", true, x(i)
		}
		piece := letter + decimal(x(i)) + " " + decimal(p.y(v))
		if letter == "M" && (i+1 == len(points) || math.IsNaN(points[i+1])) {
			piece += "h.3" // a point by itself is seen too
		}
		l.WriteString(piece)
		a.WriteString(piece)
	}
	if open {
		fmt.Fprintf(&a, "L%s 100L%s 100Z", decimal(x(len(points)-1)), decimal(first))
	}
	return l.String(), a.String()
}

func (p *plot) bars(b *strings.Builder) {
	if len(p.Series) == 0 {
		return
	}
	n := len(p.Series[0].Points)
	width := 100 / float64(max(n, 1))
	for i := range n {
		at := 0.0
		for _, s := range p.Series {
			v := s.Points[i]
			if math.IsNaN(v) || v <= 0 {
				continue
			}
			top, bottom := p.y(at+v), p.y(at)
			fmt.Fprintf(b, `<rect class="f-%s" x="%.2f%%" y="%.1f%%" width="%.2f%%" height="%.1f%%"/>`, s.Class, float64(i)*width+width*.13, top,
				width*.74, max(bottom-top, 0.6))
			at += v
		}
	}
}

// linear makes a scale from 0 to a round number above most, with ticks at the top, the middle and the bottom.
func (p *plot) linear(most float64, middle bool) {
	p.Low, p.High = 0, roundUp(most)
	p.Ticks = []tick{{At: 0, Text: count(int(p.High))}}
	if middle {
		p.Ticks = append(p.Ticks, tick{At: 50, Text: strings.TrimSuffix(fmt.Sprintf("%.1f", p.High/2), ".0")})
		if p.High >= 10 {
			p.Ticks[1].Text = count(int(p.High / 2))
		}
	}
	p.Ticks = append(p.Ticks, tick{At: 100, Text: "0"})
}

func roundUp(most float64) float64 {
	if most <= 2 {
		return 2
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, m := range []float64{1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10} {
		if m*unit >= most {
			return m * unit
		}
	}
	return 10 * unit
}

// logarithmic makes a scale of durations in seconds, whole powers of ten around what there is, four at least.
func (p *plot) logarithmic() {
	least, most := math.Inf(1), 0.0
	for _, s := range p.Series {
		for _, v := range s.Points {
			if !math.IsNaN(v) && v > 0 {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	low, high := -3, 1
	if most > 0 {
		low, high = max(int(math.Floor(math.Log10(least))), -4), int(math.Ceil(math.Log10(most)))
		for high-low < 3 {
			if low > -3 {
				low--
			} else {
				high++
			}
		}
	}
	p.Log, p.Low, p.High = true, math.Pow10(low), math.Pow10(high)
	every := (high-low)/6 + 1
	for e := high; e >= low; e -= every {
		p.Ticks = append(p.Ticks, tick{At: float64(high-e) / float64(high-low) * 100, Text: powerText(e)})
	}
}

// small makes it fit where there is little room: fewer labels.
func (p *plot) small() {
	p.Class, p.Ends = "h4", false
	if n := len(p.Times); n > 2 {
		p.Times = []tick{p.Times[0], p.Times[n-1]}
	}
	if n := len(p.Ticks); n > 3 {
		p.Ticks = []tick{p.Ticks[0], p.Ticks[n/2], p.Ticks[n-1]}
	}
}

// powerText is 10^e seconds.
func powerText(e int) string {
	d := time.Duration(math.Pow10(e+9) + .5)
	switch {
	case e == 0:
		return "1 s"
	case e == 2: // a minute and a part of one is too long for an axis
		return "100 s"
	case e < 3:
		return duration(d)
	}
	return age(d)
}

// along are five times below a chart.
func (s span) along() (list []tick) {
	const pieces = 4
	format := "15:04"
	if s.To.Sub(s.From) > 48*time.Hour {
		format = "2 Jan"
	}
	for i := range pieces + 1 {
		t := s.From.Add(s.To.Sub(s.From) / pieces * time.Duration(i))
		list = append(list, tick{At: float64(i) * 100 / pieces, Text: t.UTC().Format(format), Time: t})
	}
	return list
}
