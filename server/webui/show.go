package webui

import (
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"
)

// marks are characters that are not seen, or that turn others round: they are shown by name.
var marks = map[rune]string{
	'\u202A': "LRE", '\u202B': "RLE", '\u202C': "PDF", '\u202D': "LRO", '\u202E': "RLO",
	'\u2066': "LRI", '\u2067': "RLI", '\u2068': "FSI", '\u2069': "PDI", '\u200E': "LRM", '\u200F': "RLM", '\u061C': "ALM",
	'\u200B': "ZWSP", '\u200C': "ZWNJ", '\u200D': "ZWJ", '\u2060': "WJ", '\uFEFF': "BOM", '\u00AD': "SHY",
	'\u2028': "LSEP", '\u2029': "PSEP", '\u180E': "MVS", '\u115F': "HCF", '\u3164': "HF",
}

// show is how every string of a user is shown, n runes of it at most: what is not UTF-8, controls and marks that are not seen or
// turn the text round become visible, and what was cut is counted. Nothing in it is ever markup.
func show(s string, n int) template.HTML { return shown(s, n, false) }

// showBlock is show for blocks of code, in which lines and tabs stay what they are.
func showBlock(s string, n int) template.HTML { return shown(s, n, true) }

func shown(s string, n int, block bool) template.HTML {
	var b strings.Builder
	b.WriteString("<bdi>")
	writeShown(&b, s, n, block)
	b.WriteString("</bdi>")
	return template.HTML(b.String())
}

// writeShown writes without the element around it.
func writeShown(b *strings.Builder, s string, n int, block bool) {
	rest, left := s, n
	for ; left > 0 && rest != ""; left-- {
		r, size := utf8.DecodeRuneInString(rest)
		writeRune(b, r, size, block)
		rest = rest[size:]
	}
	if rest != "" {
		fmt.Fprintf(b, `<span class="ctl">… %s more</span>`, count(utf8.RuneCountInString(rest)))
	}
}

func writeRune(b *strings.Builder, r rune, size int, block bool) {
	switch name, mark := marks[r]; {
	case r == utf8.RuneError && size == 1:
		b.WriteRune(utf8.RuneError)
	case mark:
		b.WriteString(`<span class="ctl">⟨` + name + `⟩</span>`)
	case block && (r == '\n' || r == '\t'):
		b.WriteRune(r)
	case r == '\n':
		b.WriteString(`<span class="ctl">⏎</span>`)
	case r == '\t':
		b.WriteString(`<span class="ctl">⇥</span>`)
	case r < 0x20:
		b.WriteString(`<span class="ctl">` + string(rune(0x2400)+r) + `</span>`)
	case r == 0x7F:
		b.WriteString(`<span class="ctl">␡</span>`)
	case r >= 0x80 && r < 0xA0, r >= 0xE0000 && r <= 0xE0FFF, r >= 0xFFF0 && r < 0xFFFD:
		fmt.Fprintf(b, `<span class="ctl">⟨U+%04X⟩</span>`, r)
	case r == '<':
		b.WriteString("&lt;")
	case r == '>':
		b.WriteString("&gt;")
	case r == '&':
		b.WriteString("&amp;")
	case r == '"':
		b.WriteString("&#34;")
	case r == '\'':
		b.WriteString("&#39;")
	default:
		b.WriteRune(r)
	}
}

// plain is show for attributes: text only, without elements.
func plain(s string, n int) string {
	var b strings.Builder
	for _, r := range s {
		if n--; n < 0 {
			b.WriteString("…")
			break
		}
		switch name, mark := marks[r]; {
		case mark:
			b.WriteString("⟨" + name + "⟩")
		case r < 0x20:
			b.WriteRune(rune(0x2400) + r)
		case r == 0x7F, r >= 0x80 && r < 0xA0, r >= 0xE0000 && r <= 0xE0FFF:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
