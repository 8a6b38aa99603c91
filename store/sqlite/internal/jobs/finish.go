package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Finish ends runs, each fenced by its worker and run number.
func (t *Transition) Finish(w job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	verdicts := make([]job.Verdict, len(ends))
	for i := 0; i < len(ends); {
		if len(ends)-i >= Group && alike(ends[i:i+Group]) {
			done, err := t.finishGroup(w, ends[i:i+Group])
			if err != nil {
				return nil, err
			}
			if done {
				for range Group {
					verdicts[i] = job.Applied
					i++
				}
				continue
			}
		}
		for range min(Group, len(ends)-i) {
			var err error
			if verdicts[i], err = t.finishOne(w, &ends[i]); err != nil {
				return nil, err
			}
			i++
		}
	}
	return verdicts, nil
}

// finishOne ends one run: a short one in two statements instead of three, by
// putting the fence into the first, where nothing else hangs on its job.
func (t *Transition) finishOne(w job.WorkerID, e *job.End) (job.Verdict, error) {
	if short(e) {
		n, err := t.remember(ofOwned, e).Blob(e.ID[:]).Int(e.Run).Int(int64(w)).Changes()
		if err != nil {
			return 0, err
		}
		if n > 0 {
			return job.Applied, t.dropLive(e.ID)
		}
	}
	s, err := t.owned(w, e.ID, e.Run)
	switch {
	case err != nil:
		return 0, err
	case s == nil && e.Again:
		return t.endedBefore(w, e)
	case s == nil:
		return job.Stale, nil
	}
	if _, err = t.move(s, job.Settle(*e, s.CancelAsked)); err == nil && e.Then.Some() {
		_, err = t.Enqueue(e.Then.Drafts)
	}
	return job.Applied, err
}

// ownEnd tells whether a job has ended with a run, or went on from it, and the
// worker of that run lives.
//   - The primary keys of all four tables.
const ownEnd = `SELECT
	EXISTS (SELECT 1 FROM pawl_worker WHERE namespace = ?1 AND id = ?2 AND lost IS NULL AND gone = 0)
	AND (
		EXISTS (
			SELECT 1
			FROM pawl_job_archive
			WHERE namespace = ?1 AND id = ?3 AND (run = ?4 OR NOT ?5 AND run > ?4))
		OR EXISTS (SELECT 1 FROM pawl_tombstone WHERE namespace = ?1 AND id = ?3)
		OR NOT ?5 AND EXISTS (
			SELECT 1
			FROM pawl_job
			WHERE namespace = ?1 AND id = ?3 AND (run > ?4 OR run = ?4 AND state IN (2, 4))))`

// endedBefore tells whether a run that is over was ended by its own worker. While
// a worker lives nobody else lets go of its runs, so it was, if the job has ended
// with this run, or went on from it.
func (t *Transition) endedBefore(w job.WorkerID, e *job.End) (job.Verdict, error) {
	q := t.On(ownEnd).Int(int64(w)).Blob(e.ID[:]).Int(e.Run).Bool(e.To.Final())
	own, err := q.One()
	if err != nil || own == 0 {
		return job.Stale, err
	}
	return job.Already, nil
}

// short reports whether an end is the common one: done, and nothing else to
// write down.
func short(e *job.End) bool {
	return e.To == job.Done && !e.Burn && !e.Snooze && !e.Throttle && e.Failure == nil && e.Progress == nil && len(e.Logs) == 0 && e.Then == nil
}

// alike reports whether ends are short and differ only in their run.
func alike(ends []job.End) bool {
	for i := range ends {
		if e := &ends[i]; !short(e) || e.Result != nil || e.Reason != ends[0].Reason || e.Keep != ends[0].Keep {
			return false
		}
	}
	return true
}

// deleteGroup removes a group of live jobs, by primary key.
const deleteGroup = `DELETE FROM pawl_job
	WHERE namespace = ? AND id IN ` + GroupOfIDs

// finishGroup ends a group of runs in two statements. False means that not all
// of them were that simple; then each is to be ended by itself, which also
// repeats, without harm, what was copied here.
func (t *Transition) finishGroup(w job.WorkerID, ends []job.End) (bool, error) {
	q := t.remember(ofOwnedGroup, &ends[0])
	for i := range ends {
		q.Blob(ends[i].ID[:]).Int(ends[i].Run)
	}
	n, err := q.Int(int64(w)).Changes()
	if lite.IsConstraint(err) {
		return false, nil
	}
	if err != nil || n != Group {
		return false, err
	}
	q = t.On(deleteGroup)
	for i := range ends {
		q.Blob(ends[i].ID[:])
	}
	return true, q.Exec()
}
