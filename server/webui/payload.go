package webui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

// Bounds of how a payload is shown.
const (
	payloadShown = 64 << 10 // bytes of what is made of it
	foldOver     = 20       // entries of an array
	stringShown  = 2000     // runes of a string
)

// payload is arguments or a result, for its template.
type payload struct {
	Name, Title  string
	Size         int
	Version      int
	HTML         template.HTML
	Cut          bool // more was there than is shown
	Raw          bool
	Find         string
	Found        int
	Download     string
	RawLink      string
	AllLink      string
	Hidden, None bool
}

// Payload is of the job of a page: args or result.
func (v *view) Payload(name string) payload {
	d := v.data.(*jobData)
	p := payload{Name: name, Title: map[string]string{"args": "Arguments", "result": "Result"}[name], Version: d.Job.Version,
		Hidden: v.Hidden(), Raw: v.query.Get("raw") == name, Find: v.query.Get("find")}
	raw := d.Job.Args
	if name == "result" {
		raw = d.Job.Result
	}
	p.Size, p.None = len(raw), len(raw) == 0
	if p.Hidden || p.None {
		return p
	}
	p.Download = v.app.link("/jobs/{}/"+name, d.Job.ID)
	p.RawLink = v.With("raw", name) + "#" + name
	if p.Raw {
		p.RawLink = v.With("raw", "") + "#" + name
	}
	p.AllLink = v.With("whole", name) + "#" + name
	most := payloadShown
	if v.query.Get("whole") == name {
		most = 8 << 20
	}
	if p.Raw {
		p.HTML, p.Cut = showBlock(string(raw[:min(len(raw), most)]), most), len(raw) > most
		return p
	}
	p.HTML, p.Cut, p.Found = pretty(raw, most, p.Find)
	return p
}

// pretty is JSON with indents, numbers and the order of keys as they are, coloured by our own spans; long arrays are folded. What is no
// JSON is shown as it is.
func pretty(raw []byte, most int, find string) (html template.HTML, cut bool, found int) {
	if !json.Valid(raw) {
		return showBlock(string(raw[:min(len(raw), most)]), most), len(raw) > most, 0
	}
	w := &jsonWriter{most: most, find: strings.ToLower(find), in: json.NewDecoder(bytes.NewReader(raw)), longest: stringShown}
	if most > payloadShown {
		w.longest = most
	}
	w.in.UseNumber()
	w.b.WriteString("<bdi>")
	w.value(0)
	for range w.folds { // what was cut within folds
		w.b.WriteString("</details>")
	}
	w.b.WriteString("</bdi>")
	return template.HTML(w.b.String()), w.cut || w.clipped, w.found
}

// jsonWriter writes tokens as spans until it has written enough.
type jsonWriter struct {
	in      *json.Decoder
	b       strings.Builder
	most    int
	find    string
	cut     bool
	found   int
	folds   int  // that are open
	longest int  // runes of a string that are shown
	clipped bool // one was longer
}

func (w *jsonWriter) indent(depth int) {
	w.b.WriteByte('\n')
	w.b.WriteString(strings.Repeat("  ", min(depth, 40)))
}

// full reports whether enough was written.
func (w *jsonWriter) full() bool {
	w.cut = w.cut || w.b.Len() > w.most
	return w.cut
}

func (w *jsonWriter) value(depth int) {
	token, err := w.in.Token()
	if err != nil {
		if err != io.EOF {
			w.cut = true
		}
		return
	}
	switch t := token.(type) {
	case json.Delim:
		w.group(t, depth)
	case string:
		w.text("s", t)
	case json.Number:
		w.text("d", t.String())
	default:
		text := "null"
		if t != nil {
			text = fmt.Sprint(t)
		}
		w.text("d", text)
	}
}

// group writes what is within braces or brackets.
func (w *jsonWriter) group(open json.Delim, depth int) {
	w.b.WriteString(open.String())
	n, folded := 0, false
	for ; w.in.More() && !w.full(); n++ {
		if n > 0 {
			w.b.WriteByte(',')
		}
		if open == '[' && n == foldOver {
			w.b.WriteString(`<details class="fold"><summary>more</summary>`)
			folded = true
			w.folds++
		}
		w.indent(depth + 1)
		if open == '{' {
			key, err := w.in.Token()
			if err != nil {
				w.cut = true
				return
			}
			w.text("k", fmt.Sprint(key))
			w.b.WriteString(": ")
		}
		w.value(depth + 1)
	}
	if w.cut {
		return
	}
	if folded {
		w.b.WriteString("</details>")
		w.folds--
	}
	closing, err := w.in.Token()
	if err != nil {
		w.cut = true
		return
	}
	if n > 0 {
		w.indent(depth)
	}
	w.b.WriteString(fmt.Sprint(closing))
}

// text writes a key, a string or a number.
func (w *jsonWriter) text(class, s string) {
	mark := w.find != "" && strings.Contains(strings.ToLower(s), w.find)
	if mark {
		w.found++
		w.b.WriteString("<mark>")
	}
	w.b.WriteString(`<span class="` + class + `">`)
	if class != "d" {
		w.b.WriteString("&#34;")
	}
	w.clipped = w.clipped || len(s) > w.longest
	writeShown(&w.b, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s), w.longest, false)
	if class != "d" {
		w.b.WriteString("&#34;")
	}
	w.b.WriteString("</span>")
	if mark {
		w.b.WriteString("</mark>")
	}
}
