package webui

import (
	"html/template"
	"strings"
)

// strong is a string of a user that a sentence leans on.
type strong string

// said is a string of a user within a sentence.
type said string

// says makes a sentence: plain strings are our own words, strong and said are users', template.HTML is what other parts have rendered.
func says(words ...any) template.HTML {
	var b strings.Builder
	for _, w := range words {
		switch w := w.(type) {
		case string:
			b.WriteString(template.HTMLEscapeString(w))
		case strong:
			b.WriteString("<b>")
			b.WriteString(string(show(string(w), 80)))
			b.WriteString("</b>")
		case said:
			b.WriteString(string(show(string(w), 160)))
		case template.HTML:
			b.WriteString(string(w))
		default:
			b.WriteString(template.HTMLEscapeString(text(w)))
		}
	}
	return template.HTML(b.String())
}

// anchored is a link within a sentence; just its words where there is no such page.
func anchored(link string, words ...any) template.HTML {
	if link == "" {
		return says(words...)
	}
	return `<a class="link" href="` + template.HTML(template.HTMLEscapeString(link)) + `">` + says(words...) + `</a>`
}

// spelled are small numbers as words.
func spelled(n int) string {
	words := []string{"No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"}
	if n < len(words) {
		return words[n]
	}
	return count(n)
}
