package sqlite

import (
	"time"

	"github.com/pawlwork/pawl/job"
)

// The columns of a job as it is read, live and archived alike, so that one
// function reads both.
const (
	sharedColumns = `id, state, priority, due, run, used, max_attempts, lost, rescues, snoozes, version, created, started, timeout, deadline,
	queue, kind, "key", budget, unique_hash, unique_period, capabilities, tags, reason, progress_done, progress_total, progress_note, headers, failures, args`
	liveColumns     = sharedColumns + ", worker, cancel, NULL, NULL, NULL, deferred, wait"
	archivedColumns = sharedColumns + ", worker, 0, finished, expires, result, 0, NULL"
	columnCount     = 37 // of either
)

// large is what the large columns of a row come to that was read into a job.
func large(j *job.Job) int64 {
	return int64(len(j.HeaderBytes) + len(j.Args) + len(j.Failures.Stored()))
}

// job reads a row of liveColumns or archivedColumns. It cannot fail: a part that
// cannot be read costs that part, not the rows beside it (P8).
func readJob(q *query, j *job.Job) {
	j.ID = q.colID(0)
	j.State = job.State(q.colInt(1))
	j.Priority = int(q.colInt(2))
	j.Due = timeOf(q.colInt(3))
	j.Run = q.colInt(4)
	j.Used = int(q.colInt(5))
	j.MaxAttempts = int(q.colInt(6))
	j.Lost = int(q.colInt(7))
	j.Rescues = int(q.colInt(8))
	j.Snoozes = int(q.colInt(9))
	j.Version = int(q.colInt(10))
	j.Created = timeOf(q.colInt(11))
	j.Started = q.colTime(12)
	j.Timeout = time.Duration(q.colInt(13)) * time.Microsecond
	j.Deadline = q.colTime(14)
	j.Queue = q.colText(15)
	j.Kind = q.colText(16)
	j.Key = q.colText(17)
	j.Budget = q.colText(18)
	j.Unique = job.Unique{Hash: q.colBlob(19), Period: time.Duration(q.colInt(20)) * time.Microsecond}
	var err error
	if j.Capabilities, err = parseWords(q.colText(21)); err != nil {
		j.Unreadable = append(j.Unreadable, "capabilities")
	}
	if j.Tags, err = parseWords(q.colText(22)); err != nil {
		j.Unreadable = append(j.Unreadable, "tags")
	}
	j.Reason = q.colText(23)
	j.Progress = job.Progress{Done: q.colInt(24), Total: q.colInt(25), Note: q.colText(26)}
	j.HeaderBytes = q.colBlob(27)
	j.Failures = job.StoredFailures(q.colBlob(28))
	j.Args = q.colBlob(29)
	j.Worker = job.WorkerID(q.colInt(30))
	j.CancelAsked = q.colBool(31)
	j.Finished = q.colTime(32)
	j.Expires = q.colTime(33)
	j.Result = q.colBlob(34)
	j.Deferred = int(q.colInt(35))
	if j.State == job.Suspended {
		j.Wait = job.Wait(q.colInt(36))
	}
}
