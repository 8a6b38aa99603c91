package webui

import (
	"html/template"
	"strconv"
	"strings"
)

// spark is a line of its own height over a baseline of 0, with no axis: the number stands beside it. hue is g, r, y or "".
func spark(points []float64, hue string) template.HTML {
	most := 0.0
	for _, p := range points {
		most = max(most, p)
	}
	var b strings.Builder
	if most == 0 || len(points) < 2 {
		b.WriteString(`<svg class="spark o" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true"><path d="M0 99L100 99"/></svg>`)
		return template.HTML(b.String())
	}
	line := linePath(points, 0, most, 7)
	b.WriteString(`<svg class="spark ` + template.HTMLEscapeString(hue) +
		`" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">`)
	b.WriteString(`<path class="a" d="` + line + `L100 100L0 100Z"/><path d="` + line + `"/></svg>`)
	return template.HTML(b.String())
}

// linePath draws points over a box of 100 × 100, from least at the bottom to most, top units below the upper edge.
func linePath(points []float64, least, most, top float64) string {
	var b strings.Builder
	for i, p := range points {
		letter := byte('L')
		if i == 0 {
			letter = 'M'
		}
		b.WriteByte(letter)
		b.WriteString(decimal(float64(i) / float64(max(len(points)-1, 1)) * 100))
		b.WriteByte(' ')
		b.WriteString(decimal(100 - (p-least)/(most-least)*(100-top)))
	}
	return b.String()
}

func decimal(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}
