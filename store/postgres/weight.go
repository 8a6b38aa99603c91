package postgres

import (
	"time"

	"github.com/pawlwork/pawl/job"
)

// A message to the server has room for a gigabyte, and a commit of many callers
// should be far from that. What they bring is weighed in rows: a job whose
// arguments or result are large counts as several.
const bytesOfRow = 4 << 10

func weightOf(d *job.Draft) int { return 1 + (len(d.Args)+len(d.HeaderBytes))/bytesOfRow }

func weightOfEnd(e *job.End) int {
	bytes := len(e.Result) + len(e.Reason) + len(e.Failure)
	if e.Progress != nil {
		bytes += len(e.Progress.Note)
	}
	for i := range e.Logs {
		bytes += len(e.Logs[i].Text)
	}
	return 1 + bytes/bytesOfRow
}

// portion is how many of the items go into one commit, at least one, and what
// they weigh.
func portion[T any](items []T, weigh func(*T) int) (n, weight int) {
	for n < len(items) {
		w := weigh(&items[n])
		if n > 0 && weight+w > maxGathered {
			break
		}
		weight += w
		n++
	}
	return n, weight
}

// loading is what a load may take beyond the time that every call has.
func loading(weight int) time.Duration { return time.Duration(weight) * time.Millisecond }
