package pool

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// Bounds of what a child says on stderr.
const (
	logLine   = 4 << 10 // bytes of a line; the rest is dropped
	jobLines  = 10_000  // in the course of one job
	idleLines = 100     // between two jobs
	flushMost = 1 << 20 // bytes that belong to a job after its answer
)

// errorLog reads a child's stderr and logs its lines: to the job that the child has, else to the pool's logger.
type errorLog struct {
	from    *os.File
	idle    *slog.Logger
	flushes chan chan struct{}
	ended   chan struct{}

	mu   sync.Mutex
	to   *slog.Logger
	left int // lines that may still be logged
	line []byte
}

func newErrorLog(from *os.File, idle *slog.Logger) *errorLog {
	return &errorLog{
		from: from, idle: idle, to: idle, left: idleLines,
		flushes: make(chan chan struct{}, 1), ended: make(chan struct{}),
	}
}

// attach sends the lines to a job's log from now on, detach no more.
func (l *errorLog) attach(to *slog.Logger, lines int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.say()
	}
	l.to, l.left = to, lines
}

func (l *errorLog) detach() { l.attach(l.idle, idleLines) }

// read reads until the end. It is interrupted by flush.
func (l *errorLog) read() {
	defer close(l.ended)
	buffer := make([]byte, 16<<10)
	for {
		n, err := l.from.Read(buffer)
		l.take(buffer[:n])
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			done := <-l.flushes
			_ = l.from.SetReadDeadline(time.Time{})
			for left := flushMost; left > 0; left -= n {
				if n = readNow(l.from, buffer); n <= 0 {
					break
				}
				l.take(buffer[:n])
			}
			close(done)
		default:
			return
		}
	}
}

// flush returns when everything is logged that the child had written before. The two pipes of a child have no common
// order, but what is in this one when the answer came out of the other was written before it.
func (l *errorLog) flush() {
	done := make(chan struct{})
	select {
	case l.flushes <- done:
	case <-l.ended:
		return
	}
	_ = l.from.SetReadDeadline(time.Unix(1, 0)) // long ago: whoever reads is told at once
	select {
	case <-done:
	case <-l.ended:
	}
}

// close ends read.
func (l *errorLog) close() { _ = l.from.Close() }

func (l *errorLog) take(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(p) > 0 {
		text, rest, ended := bytes.Cut(p, []byte{'\n'})
		if room := logLine - len(l.line); room > 0 {
			l.line = append(l.line, text[:min(room, len(text))]...)
		}
		if ended {
			l.say()
		}
		p = rest
	}
}

// say logs the line. The caller holds mu.
func (l *errorLog) say() {
	switch l.left--; {
	case l.left >= 0:
		l.to.Warn(strings.ToValidUTF8(string(bytes.TrimRight(l.line, "\r")), "\uFFFD"))
	case l.left == -1:
		l.to.Warn(fmt.Sprintf("the child says more on stderr than is logged; the last line was %.100q", l.line))
	}
	l.line = l.line[:0]
}
