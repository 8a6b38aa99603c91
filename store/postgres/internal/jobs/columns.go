package jobs

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// The columns of a job as it is read, live and archived alike, so that one
// function reads both.
const (
	sharedColumns = `id, state, priority, due, run, used, max_attempts, lost, rescues, snoozes, version, created, started, timeout, deadline,
	queue, kind, key, budget, unique_hash, unique_period, capabilities, tags, reason, progress_done, progress_total, progress_note, headers, failures, args`
	LiveColumns     = sharedColumns + ", worker, cancel, deferred, NULL::timestamptz AS finished, NULL::timestamptz AS expires, NULL::bytea AS result, wait"
	archivedColumns = sharedColumns + ", worker, false AS cancel, 0 AS deferred, finished, expires, result, NULL::smallint AS wait"
	// What a claim returns: the claimer knows queue, state and worker, and every
	// column that is not NULL costs the server and the client.
	TakenColumns = `job.id, NULL, job.priority, job.due, run, used, max_attempts, nullif(lost, 0), nullif(job.rescues, 0), nullif(snoozes, 0), nullif(version, 0), created, started, timeout, deadline,
	NULL, kind, key, budget, unique_hash, unique_period, capabilities, tags, reason, progress_done, progress_total, progress_note, headers, failures, args, nullif(deferred, 0)`
)

// RowReader makes jobs of rows.
type RowReader struct {
	pg.Columns
	Large int64 // bytes of arguments, headers and failures, of all rows
}

// list reads a text[]. Where it has more dimensions than one, or an element is
// NULL, the job says that it cannot be read, and the rows beside it go on (P8).
func (r *RowReader) list(j *job.Job, name string) []string {
	c := r.Next()
	if c == nil {
		return nil
	}
	list, ok := pg.WordsOf(c)
	if !ok {
		j.Unreadable = append(j.Unreadable, name)
	}
	return list
}

// Shared reads the columns that every job has.
func (r *RowReader) Shared(j *job.Job) error {
	if id := r.Number(16); id != nil {
		j.ID = job.ID(id)
	}
	j.State = job.State(r.Int2())
	j.Priority = r.Int2()
	j.Due = r.Time()
	j.Run = r.Int8()
	j.Used = r.Int4()
	j.MaxAttempts = r.Int4()
	j.Lost = r.Int4()
	j.Rescues = r.Int4()
	j.Snoozes = r.Int4()
	j.Version = r.Int4()
	j.Created = r.Time()
	j.Started = r.Time()
	j.Timeout = r.Duration()
	j.Deadline = r.Time()
	j.Queue = r.Name()
	j.Kind = r.Name()
	j.Key = r.Text()
	j.Budget = r.Name()
	j.Unique.Hash = r.Bytes()
	j.Unique.Period = r.Duration()
	j.Capabilities = r.list(j, "capabilities")
	j.Tags = r.list(j, "tags")
	j.Reason = r.Text()
	j.Progress.Done = r.Int8()
	j.Progress.Total = r.Int8()
	j.Progress.Note = r.Text()
	j.HeaderBytes = r.Bytes()
	failures := r.Bytes()
	j.Failures = job.StoredFailures(failures)
	j.Args = r.Bytes()
	r.Large += int64(len(j.HeaderBytes) + len(failures) + len(j.Args))
	return r.Err
}

// Job reads a row of liveColumns or archivedColumns.
func (r *RowReader) Job(cols [][]byte, j *job.Job) error {
	r.Begin(cols)
	if err := r.Shared(j); err != nil {
		return err
	}
	j.Worker = job.WorkerID(r.Int8())
	j.CancelAsked = r.Bool()
	j.Deferred = r.Int4()
	j.Finished = r.Time()
	j.Expires = r.Time()
	j.Result = r.Bytes()
	j.Wait = job.Wait(r.Int2())
	return r.Err
}

func uuids(ids []job.ID) [][16]byte {
	list := make([][16]byte, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return list
}

// Priorities are asked for in order, so that rows come in order.
var Priorities = func() (list []int16) {
	for p := job.MinPriority; p <= job.MaxPriority; p++ {
		list = append(list, int16(p))
	}
	return list
}()

// LongAgo is before every due time.
var LongAgo = time.Unix(0, 0).UTC()

// A message to the server has room for a gigabyte, and a commit of many callers
// should be far from that. What they bring is weighed in rows: a job whose
// arguments or result are large counts as several.
const BytesOfRow = 4 << 10

func WeightOf(d *job.Draft) int { return 1 + (len(d.Args)+len(d.HeaderBytes))/BytesOfRow }

func WeightOfEnd(e *job.End) int {
	bytes := len(e.Result) + len(e.Reason) + len(e.Failure) + e.Then.Weight()
	if e.Progress != nil {
		bytes += len(e.Progress.Note)
	}
	for i := range e.Logs {
		bytes += len(e.Logs[i].Text)
	}
	rows := 1 + bytes/BytesOfRow
	if e.Then.Some() {
		rows += len(e.Then.Drafts)
	}
	return rows
}

// portion is how many of the items go into one commit, at least one, and what
// they weigh.
func portion[T any](items []T, weigh func(*T) int) (n, weight int) {
	for n < len(items) {
		w := weigh(&items[n])
		if n > 0 && weight+w > MaxGathered {
			break
		}
		weight += w
		n++
	}
	return n, weight
}

// loading is what a load may take beyond the time that every call has.
func loading(weight int) time.Duration { return time.Duration(weight) * time.Millisecond }
