package jobs

import (
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// move applies an end to a live row; every way out of a state comes through
// here. The caller has read the row in this transaction.
func (t *Transition) move(s *subject, e job.End) (job.Move, error) {
	m, err := job.MoveOf(&s.Subject, e, lite.TimeOf(t.Now))
	if err != nil {
		return m, err
	}
	if len(e.Logs) > 0 {
		if err := t.appendLogs(s, e.Logs); err != nil {
			return m, err
		}
	}
	if e.Failure != nil || e.Burn || e.Snooze || e.Throttle || e.Defer || e.Progress != nil || e.Rescue {
		if err := t.amend(&m); err != nil {
			return m, err
		}
	}
	switch e.To {
	case job.Waiting, job.Suspended:
		err = t.release(s, e)
	default:
		err = t.archive(s, e)
	}
	if err != nil || m.Of.Ties == 0 {
		return m, err
	}
	return m, t.follow(m)
}

// follow has the followers do what belongs to a move. They may look for other jobs,
// so the subject of this one has to be its own.
func (t *Transition) follow(m job.Move) error {
	of := *m.Of
	m.Of = &of
	for _, f := range t.Followers {
		if m.Of.Ties&f.Tie == 0 {
			continue
		}
		if err := f.Apply(t, &m); err != nil {
			return err
		}
	}
	return nil
}

// What a move changes of a live row, by its primary key.
const (
	amendRow = `UPDATE pawl_job
	SET used = used + ?, snoozes = snoozes + ?, snoozed = coalesce(?, snoozed),
		throttles = CASE WHEN ? THEN 0 ELSE throttles + ? END, throttled = coalesce(?, throttled),
		lost = lost + ?, rescues = rescues + ?,
		deferred = CASE WHEN ? THEN 0 ELSE deferred + ? END, failures = coalesce(?, failures)
	WHERE namespace = ? AND id = ?`

	setProgressOf = `UPDATE pawl_job
	SET progress_done = ?, progress_total = ?, progress_note = ?
	WHERE namespace = ? AND id = ?`

	releaseRow = `UPDATE pawl_job
	SET state = ?, due = ?, wait = ?, reason = ?, worker = NULL, claim = NULL, begun = 0, cancel = 0
	WHERE namespace = ? AND id = ?`

	setLogsOf = `UPDATE pawl_job
	SET logs = ?, ties = ties | 2
	WHERE namespace = ? AND id = ?`
)

// job.TieLogs is written out above; this line does not compile when they part.
const _ = uint(job.TieLogs-2) + uint(2-job.TieLogs)

// amend writes what a run leaves behind besides its state.
func (t *Transition) amend(m *job.Move) error {
	var snoozed, throttled int64
	if m.Snooze {
		snoozed = t.Now
	}
	if m.Throttle {
		throttled = t.Now
	}
	q := t.Query(amendRow).
		Bool(m.Burn).Bool(m.Snooze).IntOrNull(snoozed).
		Bool(m.Burn || m.Snooze).Bool(m.Throttle).IntOrNull(throttled).Bool(m.Lose).Bool(m.Rescue).Bool(m.Lose).Bool(m.Defer).BlobOrNull(m.NewFailures).
		Int(t.Namespace).Blob(m.ID[:])
	if err := q.Exec(); err != nil {
		return err
	}
	if m.Progress == nil {
		return nil
	}
	return t.setProgress(m.ID, *m.Progress)
}

func (t *Transition) setProgress(id job.ID, p job.Progress) error {
	return t.Query(setProgressOf).Int(p.Done).Int(p.Total).TextOrNull(p.Note).Int(t.Namespace).Blob(id[:]).Exec()
}

// release gives a running job up: it waits again, or is suspended.
func (t *Transition) release(s *subject, e job.End) error {
	due := t.Now
	if e.To == job.Waiting && e.Delay > 0 {
		due = lite.Later(t.Now, e.Delay)
	}
	return t.Query(releaseRow).
		Int(int64(e.To)).Int(due).IntOrNull(int64(e.Wait)).TextOrNull(e.Reason).Int(t.Namespace).Blob(s.ID[:]).Exec()
}

// What happens to a unique key when its job ends, by its primary key.
const (
	keepUnique = `UPDATE pawl_job_unique
	SET until = ?
	WHERE namespace = ? AND hash = ? AND job = ?`

	deleteUnique = `DELETE FROM pawl_job_unique
	WHERE namespace = ? AND hash = ? AND job = ?`
)

// releaseUnique frees a job's unique key at its end, or keeps it for its period.
func (t *Transition) releaseUnique(s *subject) error {
	if s.hash == nil {
		return nil
	}
	if s.period > 0 {
		return t.Query(keepUnique).
			Int(lite.Later(t.Now, time.Duration(s.period)*time.Microsecond)).Int(t.Namespace).Blob(s.hash).Blob(s.ID[:]).Exec()
	}
	return t.dropUnique(s.hash, s.ID)
}

func (t *Transition) dropUnique(hash []byte, id job.ID) error {
	return t.On(deleteUnique).Blob(hash).Blob(id[:]).Exec()
}

const insertLine = `INSERT INTO pawl_job_log (namespace, job, line, time, run, level, text)
	VALUES (?, ?, ?, ?, ?, ?, ?)`

// appendLogs adds lines behind those the job has.
func (t *Transition) appendLogs(s *subject, lines []job.LogLine) error {
	for _, l := range lines {
		s.logs++
		at := t.Now
		if !l.Time.IsZero() {
			at = lite.Micros(l.Time)
		}
		err := t.On(insertLine).
			Blob(s.ID[:]).Int(s.logs).Int(at).Int(l.Run).Int(int64(l.Level)).Text(strings.ToValidUTF8(l.Text, "\uFFFD")).Exec()
		if err != nil {
			return err
		}
	}
	return t.Query(setLogsOf).Int(s.logs).Int(t.Namespace).Blob(s.ID[:]).Exec()
}
