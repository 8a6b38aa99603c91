package pawl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Bounds of what a remote run says: those of a handler in this process.
const (
	maxRemoteLine  = 4 << 10 // bytes
	maxRemoteLines = 10_000  // of a run
)

// RemoteNote is what a run says while it goes on.
type RemoteNote struct {
	RunRef
	Progress *Progress // from 0 to its total; a total of 0 is not known
	Logs     []LogLine // their time is the store's
}

// Note keeps progress and log lines of runs. A line is cut to 4 KiB, and of a run 10,000 are kept: then one says that
// others were dropped. This process counts them, another one or the next begins anew.
func (r Remote) Note(ctx context.Context, w WorkerID, notes []RemoteNote) ([]Verdict, error) {
	if err := r.e.usable(ctx); err != nil {
		return nil, err
	}
	if len(notes) > maxRemoteEnds {
		return nil, job.Invalid("notes", len(notes), fmt.Sprintf("must be at most %d", maxRemoteEnds))
	}
	for i := range notes {
		if err := checkProgress(notes[i].Progress); err != nil {
			return nil, fmt.Errorf("note %d: %w", i, err)
		}
	}
	if _, err := r.entry(ctx, w); err != nil {
		return nil, err
	}
	list := make([]store.Note, len(notes))
	for i, n := range notes {
		list[i] = store.Note{RunRef: n.RunRef, Progress: boundProgress(n.Progress), Logs: r.e.remotes.log(w, n.RunRef, n.Logs)}
	}
	verdicts, err := r.e.store.Note(ctx, w, list)
	for i := range list {
		if err != nil || verdicts[i] != job.Applied {
			r.e.remotes.unlog(w, list[i].RunRef, len(list[i].Logs))
		}
	}
	return verdicts, err
}

// checkProgress refuses what is no part of a whole.
func checkProgress(p *Progress) error {
	switch {
	case p == nil:
		return nil
	case p.Total < 0:
		return job.Invalid("progress.total", p.Total, "must be 0, which is not known, or more")
	case p.Done < 0:
		return job.Invalid("progress.done", p.Done, "must be 0 or more")
	case p.Total > 0 && p.Done > p.Total:
		return job.Invalid("progress.done", p.Done, fmt.Sprintf("must be at most the total, %d", p.Total))
	}
	return nil
}

// boundProgress cuts the note of a progress, as for handlers of this process.
func boundProgress(p *Progress) *Progress {
	if p == nil {
		return nil
	}
	return &Progress{Done: p.Done, Total: p.Total, Note: legible(p.Note, maxNote)}
}

// log is what is kept of lines that a run logs now. The line that says that others were dropped is the last.
func (rs *remotes) log(w WorkerID, of RunRef, lines []LogLine) []LogLine {
	if len(lines) == 0 {
		return nil
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	known := rs.known[w]
	if known == nil { // forgotten just now, among too many
		return boundLines(lines)
	}
	had := known.lines[of]
	if had > maxRemoteLines {
		return nil
	}
	kept := boundLines(lines[:min(len(lines), maxRemoteLines-had)])
	if len(kept) < len(lines) {
		told := fmt.Sprintf("more than %d log lines of a run: the rest is dropped", maxRemoteLines)
		kept = append(kept, LogLine{Time: lines[len(kept)].Time, Run: of.Run, Level: 4, Text: told})
	}
	known.lines[of] = had + len(kept)
	return kept
}

// unlog takes lines back that were not stored.
func (rs *remotes) unlog(w WorkerID, of RunRef, lines int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if known := rs.known[w]; known != nil && known.lines[of] > lines {
		known.lines[of] -= lines
	} else if known != nil {
		delete(known.lines, of)
	}
}

// holds drops the counts of runs that a worker does not work on: they ended elsewhere.
func (rs *remotes) holds(w WorkerID, held []RunRef) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if known := rs.known[w]; known != nil && len(known.lines) > 0 {
		maps.DeleteFunc(known.lines, func(of RunRef, _ int) bool { return !slices.Contains(held, of) })
	}
}

// forget drops the count of a run that is over.
func (rs *remotes) forget(w WorkerID, of RunRef) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if known := rs.known[w]; known != nil {
		delete(known.lines, of)
	}
}

// boundLines cuts log lines.
func boundLines(lines []LogLine) []LogLine {
	cut := slices.Clone(lines)
	for i := range cut {
		text := strings.ToValidUTF8(cut[i].Text, "\uFFFD")
		if len(text) > maxRemoteLine {
			text = strings.ToValidUTF8(text[:maxRemoteLine], "") + "…"
		}
		cut[i].Text = text
	}
	return cut
}
