package jobs

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// The columns of a job as it is read, live and archived alike, so that one
// function reads both.
const (
	sharedColumns = `id, state, priority, due, run, used, max_attempts, lost, rescues, snoozes, version, created, started, timeout, deadline,
	queue, kind, "key", budget, unique_hash, unique_period, capabilities, tags, reason, progress_done, progress_total, progress_note, headers, failures, args`
	LiveColumns     = sharedColumns + ", worker, cancel, NULL, NULL, NULL, deferred, wait"
	archivedColumns = sharedColumns + ", worker, 0, finished, expires, result, 0, NULL"
	ColumnCount     = 37 // of either
)

// Large is what the large columns of a row come to that was read into a job.
func Large(j *job.Job) int64 {
	return int64(len(j.HeaderBytes) + len(j.Args) + len(j.Failures.Stored()))
}

// ReadJob reads a row of LiveColumns or archivedColumns. It cannot fail: a part that
// cannot be read costs that part, not the rows beside it (P8).
func ReadJob(q *lite.Query, j *job.Job) {
	j.ID = q.ColID(0)
	j.State = job.State(q.ColInt(1))
	j.Priority = int(q.ColInt(2))
	j.Due = lite.TimeOf(q.ColInt(3))
	j.Run = q.ColInt(4)
	j.Used = int(q.ColInt(5))
	j.MaxAttempts = int(q.ColInt(6))
	j.Lost = int(q.ColInt(7))
	j.Rescues = int(q.ColInt(8))
	j.Snoozes = int(q.ColInt(9))
	j.Version = int(q.ColInt(10))
	j.Created = lite.TimeOf(q.ColInt(11))
	j.Started = q.ColTime(12)
	j.Timeout = time.Duration(q.ColInt(13)) * time.Microsecond
	j.Deadline = q.ColTime(14)
	j.Queue = q.ColText(15)
	j.Kind = q.ColText(16)
	j.Key = q.ColText(17)
	j.Budget = q.ColText(18)
	j.Unique = job.Unique{Hash: q.ColBlob(19), Period: time.Duration(q.ColInt(20)) * time.Microsecond}
	var err error
	if j.Capabilities, err = ParseWords(q.ColText(21)); err != nil {
		j.Unreadable = append(j.Unreadable, "capabilities")
	}
	if j.Tags, err = ParseWords(q.ColText(22)); err != nil {
		j.Unreadable = append(j.Unreadable, "tags")
	}
	j.Reason = q.ColText(23)
	j.Progress = job.Progress{Done: q.ColInt(24), Total: q.ColInt(25), Note: q.ColText(26)}
	j.HeaderBytes = q.ColBlob(27)
	j.Failures = job.StoredFailures(q.ColBlob(28))
	j.Args = q.ColBlob(29)
	j.Worker = job.WorkerID(q.ColInt(30))
	j.CancelAsked = q.ColBool(31)
	j.Finished = q.ColTime(32)
	j.Expires = q.ColTime(33)
	j.Result = q.ColBlob(34)
	j.Deferred = int(q.ColInt(35))
	if j.State == job.Suspended {
		j.Wait = job.Wait(q.ColInt(36))
	}
}
