package wake

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Hints tells runners of this process where to look, and when: neighbours
// share a hint, which names the earliest of their times.
func Hints(drafts []job.Draft) []store.Hint {
	var hints []store.Hint
	for i := range drafts {
		d := &drafts[i]
		if n := len(hints); n > 0 && hints[n-1].Name == d.Queue && hints[n-1].Priority == d.Priority {
			if d.At.Before(hints[n-1].Due) { // zero means now, and is before all
				hints[n-1].Due = d.At
			}
			continue
		}
		hints = append(hints, store.Hint{Subject: store.SubjectQueue, Name: d.Queue, Priority: d.Priority, Due: d.At})
	}
	return hints
}
