package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// move applies an end to a live row; every way out of a state comes through
// here. The caller has read the row in this transaction.
func (t *Transition) move(s *subject, e job.End, rescued bool) error {
	if !job.CanMove(s.state, e.To) {
		return fmt.Errorf("pawl: job %s cannot move from %s to %s", s.id, s.state, e.To)
	}
	if len(e.Logs) > 0 {
		if err := t.appendLogs(s, e.Logs); err != nil {
			return err
		}
	}
	if e.Failure != nil || e.Burn || e.Snooze || e.Defer || e.Progress != nil || rescued {
		if err := t.amend(s, e, rescued); err != nil {
			return err
		}
	}
	switch e.To {
	case job.Waiting, job.Suspended:
		return t.release(s, e)
	default:
		return t.archive(s, e)
	}
}

// amend writes what a run leaves behind besides its state.
func (t *Transition) amend(s *subject, e job.End, rescued bool) error {
	failures := s.failures
	if e.Failure != nil {
		failures = job.AppendFailure(s.failures, lite.TimeOf(t.Now), e.Failure)
	}
	lost := rescued && e.Failure != nil // job.Rescue adds a failure when the handler had begun
	q := t.Query(`UPDATE pawl_job SET used = used + ?, snoozes = snoozes + ?, lost = lost + ?, rescues = rescues + ?,
		deferred = CASE WHEN ? THEN 0 ELSE deferred + ? END, failures = ?
		WHERE namespace = ? AND id = ?`).
		Bool(e.Burn).Bool(e.Snooze).Bool(lost).Bool(rescued).Bool(lost).Bool(e.Defer).BlobOrNull(failures).Int(t.Namespace).Blob(s.id[:])
	if err := q.Exec(); err != nil {
		return err
	}
	if e.Progress == nil {
		return nil
	}
	return t.setProgress(s.id, *e.Progress)
}

func (t *Transition) setProgress(id job.ID, p job.Progress) error {
	return t.Query("UPDATE pawl_job SET progress_done = ?, progress_total = ?, progress_note = ? WHERE namespace = ? AND id = ?").
		Int(p.Done).Int(p.Total).TextOrNull(p.Note).Int(t.Namespace).Blob(id[:]).Exec()
}

// release gives a running job up: it waits again, or is suspended.
func (t *Transition) release(s *subject, e job.End) error {
	due := t.Now
	if e.To == job.Waiting && e.Delay > 0 {
		due = lite.Later(t.Now, e.Delay)
	}
	return t.Query(`UPDATE pawl_job SET state = ?, due = ?, wait = ?, reason = ?, worker = NULL, claim = NULL, begun = 0, cancel = 0
		WHERE namespace = ? AND id = ?`).
		Int(int64(e.To)).Int(due).IntOrNull(int64(e.Wait)).TextOrNull(e.Reason).Int(t.Namespace).Blob(s.id[:]).Exec()
}

// releaseUnique frees a job's unique key at its end, or keeps it for its period.
func (t *Transition) releaseUnique(s *subject) error {
	if s.hash == nil {
		return nil
	}
	if s.period > 0 {
		return t.Query("UPDATE pawl_job_unique SET until = ? WHERE namespace = ? AND hash = ? AND job = ?").
			Int(lite.Later(t.Now, time.Duration(s.period)*time.Microsecond)).Int(t.Namespace).Blob(s.hash).Blob(s.id[:]).Exec()
	}
	return t.dropUnique(s.hash, s.id)
}

func (t *Transition) dropUnique(hash []byte, id job.ID) error {
	return t.On("DELETE FROM pawl_job_unique WHERE namespace = ? AND hash = ? AND job = ?").Blob(hash).Blob(id[:]).Exec()
}

// appendLogs adds lines behind those the job has.
func (t *Transition) appendLogs(s *subject, lines []job.LogLine) error {
	for _, l := range lines {
		s.logs++
		at := t.Now
		if !l.Time.IsZero() {
			at = lite.Micros(l.Time)
		}
		err := t.On("INSERT INTO pawl_job_log (namespace, job, line, time, run, level, text) VALUES (?, ?, ?, ?, ?, ?, ?)").
			Blob(s.id[:]).Int(s.logs).Int(at).Int(l.Run).Int(int64(l.Level)).Text(strings.ToValidUTF8(l.Text, "\uFFFD")).Exec()
		if err != nil {
			return err
		}
	}
	return t.Query("UPDATE pawl_job SET logs = ? WHERE namespace = ? AND id = ?").Int(s.logs).Int(t.Namespace).Blob(s.id[:]).Exec()
}
