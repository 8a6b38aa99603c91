package runner

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Bounds of what one run may say.
const (
	maxLines    = 1_000  // not stored yet; the oldest go first
	maxRunLines = 10_000 // stored over the whole run
	maxLine     = 4 << 10
)

// journal holds the log lines and the progress of a run that are not stored
// yet. It is guarded by Task.mu.
type journal struct {
	lines   []job.LogLine
	writing []job.LogLine // in a Note under way
	stored  int32
	dropped int32 // since the last line that said so

	progress job.Progress
	changed  bool // progress is not stored
	closed   bool // the run has ended
}

// AddLog keeps one line with the job, cut to 4 KiB. The time is the store's, as
// estimated. Over 1,000 lines that are not stored yet, or 10,000 in a run, lines
// are dropped, and a line says how many.
func (t *Task) AddLog(level int, text string) {
	if len(text) > maxLine {
		text = text[:maxLine] + "…"
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	line := job.LogLine{Time: t.Now(), Run: t.Job.Run, Level: level, Text: text}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.journal.add(line)
}

// SetProgress says how far the handler is. Only the newest counts.
func (t *Task) SetProgress(p job.Progress) {
	if len(p.Note) > maxLine {
		p.Note = p.Note[:maxLine] + "…"
	}
	p.Note = strings.ToValidUTF8(p.Note, "\uFFFD")
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.journal.closed {
		t.journal.progress, t.journal.changed = p, true
	}
}

func (j *journal) add(line job.LogLine) {
	switch {
	case j.closed:
		return
	case int(j.stored)+len(j.writing)+len(j.lines) >= maxRunLines:
		j.dropped++
		return
	case len(j.lines) >= maxLines:
		copy(j.lines, j.lines[1:])
		j.lines = j.lines[:len(j.lines)-1]
		j.dropped++
	}
	j.lines = append(j.lines, line)
}

// pending returns the lines to store, with one about those that were dropped.
func (j *journal) pending(run int64) []job.LogLine {
	if j.dropped == 0 {
		return j.lines
	}
	at := time.Time{}
	if len(j.lines) > 0 {
		at = j.lines[0].Time
	}
	note := job.LogLine{Time: at, Run: run, Level: 4, Text: fmt.Sprintf("%d log lines were dropped", j.dropped)}
	return append([]job.LogLine{note}, j.lines...)
}

// peek adds what is not stored to an end, and that there are lines which are.
func (j *journal) peek(e *job.End) {
	e.Logs = append([]job.LogLine(nil), j.pending(e.Run)...)
	if j.changed {
		p := j.progress
		e.Progress = &p
	}
	if j.stored > 0 || len(j.writing) > 0 {
		e.Ties |= job.TieLogs
	}
}

// close moves what is not stored into the end of the run; what is said later is dropped.
func (j *journal) close(e *job.End) {
	j.closed = true
	j.peek(e)
	j.lines, j.dropped, j.changed = nil, 0, false
}

// note takes what is not stored for a Note; false when there is nothing.
func (j *journal) note(ref store.RunRef) (store.Note, bool) {
	if j.closed || (len(j.lines) == 0 && j.dropped == 0 && !j.changed) {
		return store.Note{}, false
	}
	n := store.Note{RunRef: ref, Logs: j.pending(ref.Run)}
	if j.changed {
		p := j.progress
		n.Progress = &p
	}
	j.writing, j.lines, j.dropped, j.changed = n.Logs, nil, 0, false
	return n, true
}

// noted settles the Note under way. Lines of one that failed are kept for the
// next; when the run has ended meanwhile they are lost, since its end left
// without them.
func (j *journal) noted(n store.Note, ok bool) {
	lines := j.writing
	j.writing = nil
	if ok {
		j.stored += int32(len(lines))
		return
	}
	if j.closed {
		return
	}
	later := j.lines
	j.lines = lines
	for _, line := range later {
		j.add(line)
	}
	if n.Progress != nil && !j.changed {
		j.progress, j.changed = *n.Progress, true
	}
}
