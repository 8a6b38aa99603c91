package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Calls share a commit up to maxRows. What is large counts as several rows, so
// that a commit is bounded in bytes too: whoever comes next waits for all of them.
const bytesOfRow = 4 << 10

// RowsOfEnds is the weight of a finish.
func RowsOfEnds(ends []job.End) int {
	rows := len(ends)
	for i := range ends {
		e := &ends[i]
		bytes := len(e.Result) + len(e.Failure)
		if e.Then != nil {
			rows += len(e.Then.Drafts)
			bytes += e.Then.Weight()
		}
		if len(e.Logs) > 0 {
			rows += rowsOfLines(e.Logs)
		}
		rows += bytes / bytesOfRow
	}
	return rows
}

// RowsOfNotes is the weight of a note.
func RowsOfNotes(notes []store.Note) int {
	rows := len(notes)
	for i := range notes {
		rows += rowsOfLines(notes[i].Logs)
	}
	return rows
}

// rowsOfLines counts each line: it is a row.
func rowsOfLines(lines []job.LogLine) int {
	rows := len(lines)
	for i := range lines {
		rows += len(lines[i].Text) / bytesOfRow
	}
	return rows
}
