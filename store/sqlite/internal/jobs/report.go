package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// By pawl_job_held.
var runsOfWorker = "SELECT " + subjectRow.Columns + `
	FROM ` + Running + ` AND worker = ?`

// ReportRuns takes a worker's word for the runs it owns. What is leased to it beyond them was
// lost on the way, in the answer of a claim, and goes back.
func (t *Transition) ReportRuns(w job.WorkerID, refs []store.RunRef) (held store.ReportReply, err error) {
	if err := workers.Live(&t.Session, w); err != nil {
		return held, err
	}
	leased, err := subjects(t.On(runsOfWorker).Int(int64(w)))
	if err != nil {
		return held, err
	}
	owned := make(map[store.RunRef]bool, len(leased))
	for _, s := range leased {
		owned[store.RunRef{ID: s.ID, Run: s.Run}] = true
	}
	reported := make(map[store.RunRef]bool, len(refs))
	for _, r := range refs {
		reported[r] = true
		if !owned[r] {
			held.Stale = append(held.Stale, r)
		}
	}
	for i := range leased {
		s := &leased[i]
		if reported[store.RunRef{ID: s.ID, Run: s.Run}] {
			continue
		}
		if _, err := t.move(s, job.GiveBack(&s.Subject, t.Keep(s.Queue))); err != nil {
			return held, err
		}
		held.Returned++
	}
	return held, nil
}
