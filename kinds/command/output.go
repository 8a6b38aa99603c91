package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// clip keeps the beginning and the end of what is written to it, each up to limit bytes.
type clip struct {
	limit int
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where in the ring the next byte goes
	size  int64  // of all that was written
}

// Write never fails.
func (c *clip) Write(p []byte) (int, error) {
	n := len(p)
	c.size += int64(n)
	if room := c.limit - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	if over := len(p) - c.limit; over > 0 {
		p = p[over:]
	}
	for len(p) > 0 {
		var took int
		if len(c.tail) < c.limit {
			took = min(c.limit-len(c.tail), len(p))
			c.tail = append(c.tail, p[:took]...)
		} else {
			took = copy(c.tail[c.next:], p)
		}
		c.next = (c.next + took) % c.limit
		p = p[took:]
	}
	return n, nil
}

// last is the end of what was written, up to the limit, or more when nothing is missing in between.
func (c *clip) last() []byte {
	end := c.tail
	if len(c.tail) == c.limit {
		end = append(bytes.Clone(c.tail[c.next:]), c.tail[:c.next]...)
	}
	if c.size == int64(len(c.head)+len(c.tail)) {
		return append(bytes.Clone(c.head), end...)
	}
	return end
}

// text is the end of what was written as text, of at most so many bytes.
func (c *clip) text(most int) string {
	end := c.last()
	return strings.ToValidUTF8(string(end[max(0, len(end)-most):]), "\uFFFD")
}

// cut is the beginning and the end, of together about most bytes, with a line between them that says what is missing.
func (c *clip) cut(most int) (text string, cut bool) {
	if c.size <= int64(most) && c.size == int64(len(c.head)+len(c.tail)) {
		return strings.ToValidUTF8(string(c.last()), "\uFFFD"), false
	}
	half := most / 2
	head, tail := c.head[:min(half, len(c.head))], c.last()
	tail = tail[max(0, len(tail)-half):]
	missing := c.size - int64(len(head)+len(tail))
	return strings.ToValidUTF8(fmt.Sprintf("%s\n… %d bytes left out …\n%s", head, missing, tail), "\uFFFD"), true
}

// fit fills in the output so that the result as JSON has at most limit bytes. Bytes become up to six in JSON, so it cuts
// until it is so; what is short is kept whole as long as the other can be cut.
func fit(r *Result, stdout, stderr *clip, limit int) {
	for most := limit; ; most = most * 3 / 4 {
		out, errs := most, most
		if total := stdout.size + stderr.size; total > int64(most) {
			half := most / 2
			out = half + int(max(0, int64(half)-stderr.size))
			errs = half + int(max(0, int64(half)-stdout.size))
		}
		r.Stdout, r.StdoutCut = stdout.cut(out)
		r.Stderr, r.StderrCut = stderr.cut(errs)
		text, err := json.Marshal(r)
		if err != nil || len(text) <= limit || most < 8 {
			return
		}
	}
}

// stream reads one of a program's outputs to its end, however much it is.
type stream struct {
	from  *os.File
	kept  clip
	lines *lineLog // nil: not wanted
	ended chan struct{}
}

func newStream(from *os.File, limit int) *stream {
	return &stream{from: from, kept: clip{limit: limit / 2}, ended: make(chan struct{})}
}

func (s *stream) read() {
	defer close(s.ended)
	var to io.Writer = &s.kept
	if s.lines != nil {
		defer s.lines.flush()
		to = io.MultiWriter(&s.kept, s.lines)
	}
	_, _ = io.CopyBuffer(writerOnly{to}, readerOnly{s.from}, make([]byte, 32<<10))
}

// finish waits for the end, at most so long.
func (s *stream) finish(most time.Duration) {
	_ = s.from.SetReadDeadline(time.Now().Add(most))
	<-s.ended
	_ = s.from.Close()
}

// writerOnly and readerOnly hide what io.Copy would use instead of our buffer.
type (
	writerOnly struct{ io.Writer }
	readerOnly struct{ io.Reader }
)

// Bounds of what goes to the log.
const (
	maxLogLine  = 4 << 10
	maxLogLines = 10_000
)

// lineLog makes log lines of a stream.
type lineLog struct {
	log   func(text string, args ...any)
	line  []byte
	lines int
}

// Write never fails.
func (l *lineLog) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		text, rest, ended := bytes.Cut(p, []byte{'\n'})
		if room := maxLogLine - len(l.line); room > 0 {
			l.line = append(l.line, text[:min(room, len(text))]...)
		}
		if ended {
			l.say()
		}
		p = rest
	}
	return n, nil
}

// flush says the last line, which has no end.
func (l *lineLog) flush() {
	if len(l.line) > 0 {
		l.say()
	}
}

func (l *lineLog) say() {
	switch l.lines++; {
	case l.lines <= maxLogLines:
		l.log(strings.ToValidUTF8(string(bytes.TrimRight(l.line, "\r")), "\uFFFD"))
	case l.lines == maxLogLines+1:
		l.log(fmt.Sprintf("more than %d lines: the rest is not logged", maxLogLines))
	}
	l.line = l.line[:0]
}
