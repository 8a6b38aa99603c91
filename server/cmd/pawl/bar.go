package main

import (
	"fmt"
	"io"
	"strings"
)

// bar shows how far long work is: on a terminal only, and gone in the end.
type bar struct {
	w     io.Writer // nil: nobody looks
	what  string
	drawn bool
}

func (c *call) bar(what string) *bar {
	if !c.terminal || c.json {
		return &bar{}
	}
	return &bar{w: c.err, what: what}
}

// at draws it; total 0 is not known.
func (b *bar) at(done, total int64) {
	if b.w == nil {
		return
	}
	b.drawn = true
	if total <= 0 {
		fmt.Fprintf(b.w, "\r\x1b[K%d %s", done, b.what)
		return
	}
	const width = 30
	full := int(min(done, total) * width / total)
	fmt.Fprintf(b.w, "\r\x1b[K[%s%s] %d of %d %s", strings.Repeat("#", full), strings.Repeat(".", width-full), done, max(done, total), b.what)
}

// end takes it away.
func (b *bar) end() {
	if b.drawn {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.drawn = false
	}
}
