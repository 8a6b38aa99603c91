package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
)

// The columns of a job as it is read, live and archived alike, so that one
// function reads both.
const (
	sharedColumns = `id, state, priority, due, run, used, max_attempts, lost, rescues, snoozes, version, created, started, timeout, deadline,
	queue, kind, key, budget, unique_hash, unique_period, capabilities, tags, reason, progress_done, progress_total, progress_note, headers, failures, args`
	liveColumns = sharedColumns + ", worker, cancel, NULL::timestamptz AS finished, NULL::timestamptz AS expires, NULL::bytea AS result"
	// In an UPDATE that joins, names have to say whose they are.
	takenColumns = `job.id, state, job.priority, job.due, run, used, max_attempts, lost, job.rescues, snoozes, version, created, started, timeout, deadline,
	queue, kind, key, budget, unique_hash, unique_period, capabilities, tags, reason, progress_done, progress_total, progress_note, headers, failures, args,
	worker, cancel, NULL::timestamptz AS finished, NULL::timestamptz AS expires, NULL::bytea AS result`
	archivedColumns = sharedColumns + ", NULL::bigint AS worker, false AS cancel, finished, expires, result"
)

// jobRow reads one row of liveColumns or archivedColumns.
type jobRow struct {
	id                                pgtype.UUID // invalid where there is no job
	state, priority                   pgtype.Int2
	due, created                      pgtype.Timestamptz
	run                               pgtype.Int8
	used, max, lost, rescues, snoozes pgtype.Int4
	version                           pgtype.Int4
	started, deadline                 pgtype.Timestamptz
	timeout, period                   pgtype.Int8
	queue, kind, key, budget          pgtype.Text
	hash                              []byte
	capabilities, tags                []string
	reason, note                      pgtype.Text
	done, total                       pgtype.Int8
	headers, failures, args           []byte
	worker                            pgtype.Int8
	cancel                            pgtype.Bool
	finished, expires                 pgtype.Timestamptz
	result                            []byte
}

// targets are where the columns go, in their order.
func (r *jobRow) targets() []any {
	return []any{
		&r.id, &r.state, &r.priority, &r.due, &r.run, &r.used, &r.max, &r.lost, &r.rescues, &r.snoozes, &r.version, &r.created,
		&r.started, &r.timeout, &r.deadline, &r.queue, &r.kind, &r.key, &r.budget, &r.hash, &r.period, &r.capabilities, &r.tags,
		&r.reason, &r.done, &r.total, &r.note, &r.headers, &r.failures, &r.args, &r.worker, &r.cancel, &r.finished, &r.expires, &r.result,
	}
}

// job makes a job of the row. Byte slices are taken over, not copied: the next
// scan makes new ones.
func (r *jobRow) job(j *job.Job) error {
	failures, err := job.DecodeFailures(r.failures)
	if err != nil {
		return fmt.Errorf("failures of job %s: %w", job.ID(r.id.Bytes), err)
	}
	*j = job.Job{
		ID: r.id.Bytes, State: job.State(r.state.Int16), Priority: int(r.priority.Int16), Due: instant(r.due), Run: r.run.Int64,
		Used: int(r.used.Int32), MaxAttempts: int(r.max.Int32), Lost: int(r.lost.Int32), Rescues: int(r.rescues.Int32), Snoozes: int(r.snoozes.Int32),
		Version: int(r.version.Int32), Created: instant(r.created), Started: instant(r.started),
		Timeout: duration(r.timeout), Deadline: instant(r.deadline),
		Queue: r.queue.String, Kind: r.kind.String, Key: r.key.String, Budget: r.budget.String,
		Unique:       job.Unique{Hash: r.hash, Period: duration(r.period)},
		Capabilities: r.capabilities, Tags: r.tags, Reason: r.reason.String,
		Progress: job.Progress{Done: r.done.Int64, Total: r.total.Int64, Note: r.note.String},
		Headers:  r.headers, Failures: failures, Args: r.args,
		Worker: job.WorkerID(r.worker.Int64), CancelAsked: r.cancel.Bool,
		Finished: instant(r.finished), Expires: instant(r.expires), Result: r.result,
	}
	r.capabilities, r.tags = nil, nil
	return nil
}

func instant(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

func duration(micros pgtype.Int8) time.Duration {
	return time.Duration(micros.Int64) * time.Microsecond
}

func uuids(ids []job.ID) [][16]byte {
	list := make([][16]byte, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return list
}
