package runner

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// What one call to store ends or notes carries, at most.
const (
	// maxFinish ends. Twice as many were no faster, and took twice the memory:
	// they are what a draining worker holds most of.
	maxFinish = 500
	// maxLoad is bytes of ends: a link of 2 MB/s carries them in time.
	maxLoad = 16 << 20
	// maxNoteLoad is fewer, because lines whose answer is lost are not sent again.
	maxNoteLoad = 4 << 20
	// minLoad is how far the bytes are halved. A call with fewer that fails does
	// not fail because of its bytes.
	minLoad = 1 << 20
	// itemBytes is what an end or a note costs beside its texts.
	itemBytes = 4 << 10
	// largeEnd is the size from which an end that fails alone may fail because of it.
	largeEnd = 256 << 10
)

// load is how many bytes the next call may carry. A call that took too long is
// followed by one with half as many: the same bytes on the same link would take
// as long again, for ever. It grows again while calls take less than a quarter
// of the time they have, because twice as much then takes less than half of it.
type load struct{ bytes, most int }

func newLoad(most int) load { return load{bytes: most, most: most} }

func (l *load) shrink(sent int) { l.bytes = max(sent/2, minLoad) }

func (l *load) grow(took, limit time.Duration) {
	if took < limit/4 {
		l.bytes = min(2*l.bytes, l.most)
	}
}

// fits is how many of the items one call may carry, at least one, and what they
// weigh.
func (l load) fits(n, most int, weight func(int) int) (count, bytes int) {
	for count < n && count < most {
		w := weight(count)
		if count > 0 && bytes+w > l.bytes {
			break
		}
		bytes += w
		count++
	}
	return count, bytes
}

// weightOfEnd is how many bytes an end takes on its way to the store, about.
func weightOfEnd(e *job.End) int {
	bytes := itemBytes + len(e.Result) + len(e.Reason) + len(e.Failure)
	if len(e.Logs) > 0 {
		bytes += weightOfLines(e.Logs)
	}
	if e.Then != nil {
		bytes += e.Then.Weight()
	}
	if e.Progress != nil {
		bytes += len(e.Progress.Note)
	}
	return bytes
}

// weightOfNote is weightOfEnd for a note.
func weightOfNote(n *store.Note) int {
	bytes := itemBytes + weightOfLines(n.Logs)
	if n.Progress != nil {
		bytes += len(n.Progress.Note)
	}
	return bytes
}

func weightOfLines(lines []job.LogLine) int {
	const row = 64 // its other columns
	bytes := row * len(lines)
	for i := range lines {
		bytes += len(lines[i].Text)
	}
	return bytes
}
