package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// Operate applies an operator's verb to each id, with the audit entries of what it
// changed. Jobs that are not what an operation looked for any more are left alone.
func (t *Transition) Operate(v store.Verb, ids []job.ID, op store.Operator, of *store.Operation) ([]store.Change, error) {
	changes := make([]store.Change, len(ids))
	for i, id := range ids {
		was, at, err := t.standing(id)
		if err != nil {
			return nil, err
		}
		if of != nil && !of.Matches(was, at.Queue) {
			changes[i] = store.Left(was)
			continue
		}
		if changes[i], err = t.operateOne(v, id, at); err != nil {
			return nil, err
		}
		if changes[i] == store.Changed || changes[i] == store.Asked {
			if err := settings.Audit(&t.Session, op, string(v.Name), id.String(), v.Detail(changes[i], was, at)); err != nil {
				return nil, err
			}
		}
	}
	return changes, nil
}

func (t *Transition) operateOne(v store.Verb, id job.ID, at store.Standing) (store.Change, error) {
	switch v.Name {
	case store.VerbCancel:
		return t.cancelOne(id)
	case store.VerbRetry:
		return t.retryOne(id)
	case store.VerbDelete:
		return t.deleteOne(id)
	case store.VerbRunNow:
		return t.runNowOne(id, at)
	}
	return t.placeOne(v, id, at)
}

// What an operator's verb reads and changes, by primary keys.
const (
	standingOf = `SELECT state, queue, priority
	FROM pawl_job
	WHERE namespace = ?1 AND id = ?2
	UNION ALL
	SELECT state, queue, priority
	FROM pawl_job_archive
	WHERE namespace = ?1 AND id = ?2
	LIMIT 1`

	placeLive = `UPDATE pawl_job
	SET gate = CASE WHEN queue = ?1 THEN gate END, queue = ?1, priority = ?2
	WHERE namespace = ?3 AND id = ?4`

	placeArchived = `UPDATE pawl_job_archive
	SET gate = CASE WHEN queue = ?1 THEN gate END, queue = ?1, priority = ?2
	WHERE namespace = ?3 AND id = ?4`

	gateOf = `SELECT gate
	FROM pawl_job
	WHERE namespace = ? AND id = ?`
)

// standing is the state of a job, and where it stands; 0 where there is none.
func (t *Transition) standing(id job.ID) (was job.State, at store.Standing, err error) {
	q := t.On(standingOf).Blob(id[:])
	if q.Step() {
		was, at = job.State(q.ColInt(0)), store.Standing{Queue: q.ColText(1), Priority: int(q.ColInt(2))}
	}
	return was, at, q.Done()
}

// placeOne puts a job into another queue or priority. It keeps its due time, and so
// its turn, its gate and its unique key.
func (t *Transition) placeOne(v store.Verb, id job.ID, at store.Standing) (store.Change, error) {
	s, ended, err := t.find(id)
	if err != nil {
		return 0, err
	}
	answer := store.PlaceAnswer(v, s.of(), ended, at)
	if answer != store.Changed {
		return answer, nil
	}
	text := placeLive
	if s == nil {
		text = placeArchived
	}
	to := v.Moved(at)
	return answer, t.Query(text).Text(to.Queue).Int(int64(to.Priority)).Int(t.Namespace).Blob(id[:]).Exec()
}

// The first due time of the others of a queue and priority.
//   - pawl_job_ready, or pawl_job_gated for those behind one gate: a seek.
const (
	firstReady = `SELECT due
	FROM pawl_job INDEXED BY pawl_job_ready
	WHERE namespace = ? AND state = 2 AND gate IS NULL AND queue = ? AND priority = ? AND id <> ?
	ORDER BY due
	LIMIT 1`

	firstGated = `SELECT due
	FROM pawl_job INDEXED BY pawl_job_gated
	WHERE namespace = ? AND state = 2 AND gate IS NOT NULL AND queue = ? AND priority = ? AND id <> ? AND gate = ?
	ORDER BY due
	LIMIT 1`
)

// runNowOne makes a waiting job due, a moment before the first of its queue and
// priority.
func (t *Transition) runNowOne(id job.ID, at store.Standing) (store.Change, error) {
	s, ended, err := t.find(id)
	if err != nil {
		return 0, err
	}
	answer := store.RunNowAnswer(s.of(), ended)
	if answer != store.Changed {
		return answer, nil
	}
	due := min(lite.Micros(s.Due), t.Now)
	gate, err := t.On(gateOf).Blob(id[:]).One()
	if err != nil {
		return 0, err
	}
	q := t.Query(firstReady)
	if gate != 0 {
		q = t.Query(firstGated)
	}
	q.Int(t.Namespace).Text(at.Queue).Int(int64(at.Priority)).Blob(id[:])
	if gate != 0 {
		q.Int(gate)
	}
	if q.Step() {
		due = min(due, q.ColInt(0)-1)
	}
	if err := q.Done(); err != nil {
		return 0, err
	}
	return answer, t.Query(makeDue).Int(due).Int(t.Namespace).Blob(id[:]).Exec()
}

// Foresee says what a verb would answer, and changes nothing.
func Foresee(c *lite.Snapshot, v store.Verb, ids []job.ID) ([]store.Foreseen, error) {
	t := Transition{Session: lite.Session{Snapshot: *c, Now: c.Clock.Now()}}
	answers := make([]store.Foreseen, len(ids))
	for i, id := range ids {
		_, at, err := t.standing(id)
		if err != nil {
			return nil, err
		}
		s, ended, err := t.find(id)
		if err != nil {
			return nil, err
		}
		answers[i].Change = v.Answer(s.of(), ended, at, lite.TimeOf(t.Now))
		if v.Name != store.VerbRetry || s != nil || answers[i].Change != store.Changed {
			continue
		}
		hash, err := t.archivedKey(id)
		if err != nil {
			return nil, err
		}
		if hash == nil {
			continue
		}
		holder, taken, err := t.uniqueHolder(hash)
		if err != nil {
			return nil, err
		}
		if taken && holder != id {
			answers[i].Change = store.Duplicate
		} else {
			answers[i].Key = string(hash)
		}
	}
	return answers, nil
}

func (t *Transition) archivedKey(id job.ID) (hash []byte, err error) {
	q := t.On(archivedHash).Blob(id[:])
	if q.Step() {
		hash = q.ColBlob(0)
	}
	return hash, q.Done()
}
