package postgres

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
)

// The columns of a job as it is read, live and archived alike, so that one
// function reads both.
const (
	sharedColumns = `id, state, priority, due, run, used, max_attempts, lost, rescues, snoozes, version, created, started, timeout, deadline,
	queue, kind, key, budget, unique_hash, unique_period, capabilities, tags, reason, progress_done, progress_total, progress_note, headers, failures, args`
	liveColumns     = sharedColumns + ", worker, cancel, deferred, NULL::timestamptz AS finished, NULL::timestamptz AS expires, NULL::bytea AS result, wait"
	archivedColumns = sharedColumns + ", worker, false AS cancel, 0 AS deferred, finished, expires, result, NULL::smallint AS wait"
	// What a claim returns: the claimer knows queue, state and worker, and every
	// column that is not NULL costs the server and the client.
	takenColumns = `job.id, NULL, job.priority, job.due, run, used, max_attempts, nullif(lost, 0), nullif(job.rescues, 0), nullif(snoozes, 0), nullif(version, 0), created, started, timeout, deadline,
	NULL, kind, key, budget, unique_hash, unique_period, capabilities, tags, reason, progress_done, progress_total, progress_note, headers, failures, args, nullif(deferred, 0)`
)

// rowReader makes jobs of rows in the binary form in which the server sends
// them: claims read tens of thousands a second, and this is a third of the cost
// of scanning them column by column.
type rowReader struct {
	at   int
	cols [][]byte
	err  error
	// Names repeat from row to row; each is kept once.
	names map[string]string
	large int64 // bytes of arguments, headers and failures, of all rows
}

func (r *rowReader) next() []byte {
	c := r.cols[r.at]
	r.at++
	return c
}

func (r *rowReader) number(size int) []byte {
	c := r.next()
	if c != nil && len(c) != size {
		r.err = fmt.Errorf("column %d has %d bytes, want %d", r.at-1, len(c), size)
		return nil
	}
	return c
}

func (r *rowReader) int2() int {
	if c := r.number(2); c != nil {
		return int(int16(binary.BigEndian.Uint16(c)))
	}
	return 0
}

func (r *rowReader) int4() int {
	if c := r.number(4); c != nil {
		return int(int32(binary.BigEndian.Uint32(c)))
	}
	return 0
}

func (r *rowReader) int8() int64 {
	if c := r.number(8); c != nil {
		return int64(binary.BigEndian.Uint64(c))
	}
	return 0
}

func (r *rowReader) bool() bool {
	c := r.number(1)
	return c != nil && c[0] != 0
}

// The epoch of Postgres, in microseconds after that of Unix.
const postgresEpoch = 946_684_800_000_000

func (r *rowReader) time() time.Time {
	c := r.number(8)
	if c == nil {
		return time.Time{}
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(c)) + postgresEpoch).UTC()
}

func (r *rowReader) duration() time.Duration { return time.Duration(r.int8()) * time.Microsecond }

func (r *rowReader) text() string { return string(r.next()) }

// name is a text that most rows share.
func (r *rowReader) name() string {
	c := r.next()
	if len(c) == 0 {
		return ""
	}
	if known, ok := r.names[string(c)]; ok {
		return known
	}
	if r.names == nil || len(r.names) > 1000 {
		r.names = map[string]string{}
	}
	s := string(c)
	r.names[s] = s
	return s
}

// bytes copies: the buffer is the connection's.
func (r *rowReader) bytes() []byte {
	c := r.next()
	if c == nil {
		return nil
	}
	return append(make([]byte, 0, len(c)), c...)
}

// list reads a text[] of one dimension: its number of dimensions, a flag, the
// type of elements, their count, the lower bound, and each with its length. Where
// it has more dimensions, or an element is NULL, the job says that it cannot be
// read, and the rows beside it go on (P8).
func (r *rowReader) list(j *job.Job, name string) []string {
	c := r.next()
	if c == nil {
		return nil
	}
	list, ok := wordsOf(c)
	if !ok {
		j.Unreadable = append(j.Unreadable, name)
	}
	return list
}

func wordsOf(c []byte) (list []string, ok bool) {
	if len(c) < 12 {
		return nil, false
	}
	dimensions := binary.BigEndian.Uint32(c)
	if dimensions == 0 {
		return nil, true // empty
	}
	if dimensions != 1 || len(c) < 20 {
		return nil, false
	}
	n := int(binary.BigEndian.Uint32(c[12:]))
	c = c[20:]
	list = make([]string, 0, min(n, len(c)/4))
	for range n {
		if len(c) < 4 {
			return nil, false
		}
		size := int(int32(binary.BigEndian.Uint32(c)))
		c = c[4:]
		if size < 0 || size > len(c) {
			return nil, false
		}
		list = append(list, string(c[:size]))
		c = c[size:]
	}
	return list, true
}

// shared reads the columns that every job has.
func (r *rowReader) shared(j *job.Job) error {
	if id := r.number(16); id != nil {
		j.ID = job.ID(id)
	}
	j.State = job.State(r.int2())
	j.Priority = r.int2()
	j.Due = r.time()
	j.Run = r.int8()
	j.Used = r.int4()
	j.MaxAttempts = r.int4()
	j.Lost = r.int4()
	j.Rescues = r.int4()
	j.Snoozes = r.int4()
	j.Version = r.int4()
	j.Created = r.time()
	j.Started = r.time()
	j.Timeout = r.duration()
	j.Deadline = r.time()
	j.Queue = r.name()
	j.Kind = r.name()
	j.Key = r.text()
	j.Budget = r.name()
	j.Unique.Hash = r.bytes()
	j.Unique.Period = r.duration()
	j.Capabilities = r.list(j, "capabilities")
	j.Tags = r.list(j, "tags")
	j.Reason = r.text()
	j.Progress.Done = r.int8()
	j.Progress.Total = r.int8()
	j.Progress.Note = r.text()
	j.HeaderBytes = r.bytes()
	failures := r.bytes()
	j.Failures = job.StoredFailures(failures)
	j.Args = r.bytes()
	r.large += int64(len(j.HeaderBytes) + len(failures) + len(j.Args))
	return r.err
}

// job reads a row of liveColumns or archivedColumns.
func (r *rowReader) job(cols [][]byte, j *job.Job) error {
	r.at, r.cols, r.err = 0, cols, nil
	if err := r.shared(j); err != nil {
		return err
	}
	j.Worker = job.WorkerID(r.int8())
	j.CancelAsked = r.bool()
	j.Deferred = r.int4()
	j.Finished = r.time()
	j.Expires = r.time()
	j.Result = r.bytes()
	j.Wait = job.Wait(r.int2())
	return r.err
}

func uuids(ids []job.ID) [][16]byte {
	list := make([][16]byte, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return list
}
