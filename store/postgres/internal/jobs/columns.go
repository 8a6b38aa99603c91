package jobs

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// column is a column of a job. Every list of columns in a statement is made from
// the table below, and so is what reads and writes them: a new column is an entry
// there, and a line for each table in the schema.
type column struct {
	name, kind string // as in the schema
	in         where
	taken      string // what a claim returns of it; empty: the claimer knows it, or it is not set yet
	subject    string // how a job.Subject has it; empty: not at all
	read       func(*RowReader, *job.Job)
	draft      setter // how an enqueue sets it; zero: not at all
}

// where says which rows have a column.
type where uint8

const (
	inJob where = 1 << iota
	inArchive
	goesAlong // into the archive and back, unless a statement changes it
	isLarge   // its bytes count where a claim is bounded by bytes
	inBoth    = inJob | inArchive
	carried   = inBoth | goesAlong
)

// Ways to select a column; % is its name. A column that is not NULL costs the
// server and the client, and a claim reads tens of thousands of rows a second.
const (
	asItIs  = "job.%"
	notZero = "nullif(job.%, 0)"
	orZero  = "coalesce(job.%, 0)"
)

// columns are all columns of a job, in the order in which they are selected. A
// subject is read by readSubject, in the same order.
var columns = []column{
	{name: "namespace", kind: "int", in: inBoth},
	{
		name: "id", kind: "uuid", in: inBoth, taken: asItIs, subject: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.ID = r.id() },
		draft: draftAlways(func(d *job.Draft) [16]byte { return d.ID }, pg.CopyUUID),
	},
	{
		name: "state", kind: "smallint", in: inBoth, subject: asItIs,
		read: func(r *RowReader, j *job.Job) { j.State = job.State(r.Int2()) },
	},
	{
		name: "priority", kind: "smallint", in: carried, taken: asItIs, subject: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Priority = r.Int2() },
		draft: draftAlways(func(d *job.Draft) int16 { return int16(d.Priority) }, pg.CopyInt2),
	},
	{
		name: "due", kind: "timestamptz", in: carried, taken: asItIs, subject: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Due = r.Time() },
	},
	{
		name: "run", kind: "bigint", in: carried, taken: asItIs, subject: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Run = r.Int8() },
	},
	{
		name: "used", kind: "int", in: carried, taken: asItIs, subject: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Used = r.Int4() },
	},
	{
		name: "max_attempts", kind: "int", in: carried, taken: asItIs, subject: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.MaxAttempts = r.Int4() },
		draft: draftAlways(func(d *job.Draft) int32 { return int32(d.Attempts) }, pg.CopyInt4),
	},
	{
		name: "lost", kind: "int", in: carried, taken: notZero, subject: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Lost = r.Int4() },
	},
	{
		name: "rescues", kind: "int", in: carried, taken: notZero,
		read: func(r *RowReader, j *job.Job) { j.Rescues = r.Int4() },
	},
	{
		name: "snoozes", kind: "int", in: carried, taken: notZero,
		read: func(r *RowReader, j *job.Job) { j.Snoozes = r.Int4() },
	},
	{
		name: "throttles", kind: "int", in: carried, taken: notZero,
		read: func(r *RowReader, j *job.Job) {
			if n := r.Int4(); n != 0 {
				j.Rarely().Throttles = n
			}
		},
	},
	{
		name: "deferred", kind: "int", in: inJob, taken: notZero,
		read: func(r *RowReader, j *job.Job) { j.Deferred = r.Int4() },
	},
	{
		name: "version", kind: "int", in: carried, taken: notZero,
		read: func(r *RowReader, j *job.Job) { j.Version = r.Int4() },
		draft: draftIf(func(d *job.Draft) bool { return d.Version != 0 },
			func(d *job.Draft) int32 { return int32(d.Version) }, pg.CopyInt4),
	},
	{
		name: "created", kind: "timestamptz", in: carried, taken: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Created = r.Time() },
	},
	{
		name: "started", kind: "timestamptz", in: carried, taken: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Started = r.Time() },
	},
	{name: "finished", kind: "timestamptz", in: inArchive, read: func(r *RowReader, j *job.Job) { j.Finished = r.Time() }},
	{name: "expires", kind: "timestamptz", in: inArchive, read: func(r *RowReader, j *job.Job) { j.Expires = r.Time() }},
	{
		name: "timeout", kind: "bigint", in: carried, taken: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Timeout = r.Duration() },
		draft: draftDuration(func(d *job.Draft) time.Duration { return d.Timeout }),
	},
	{
		name: "deadline", kind: "timestamptz", in: carried, taken: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Deadline = r.Time() },
		draft: draftIf(func(d *job.Draft) bool { return !d.Deadline.IsZero() },
			func(d *job.Draft) pgtype.Timestamptz { return timeOrNull(d.Deadline) }, pg.CopyNullTime),
	},
	{name: "snoozed", kind: "timestamptz", in: carried, read: func(r *RowReader, j *job.Job) { j.Rarely().Snoozed = r.Time() }},
	{name: "throttled", kind: "timestamptz", in: carried, read: func(r *RowReader, j *job.Job) { j.Rarely().Throttled = r.Time() }},
	{
		name: "gate", kind: "bigint", in: carried, // a claim of one knows it
		read: func(r *RowReader, j *job.Job) { j.Rarely().Gate = r.Int8() },
		draft: draftIf(func(d *job.Draft) bool { return d.Gate != 0 },
			func(d *job.Draft) pgtype.Int8 { return pgtype.Int8{Int64: d.Gate, Valid: d.Gate != 0} }, pg.CopyNullInt8),
	},
	{name: "node", kind: "int", in: carried},
	{
		name: "queue", kind: "text", in: carried, subject: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Queue = r.Name() },
		draft: draftAlways(func(d *job.Draft) string { return d.Queue }, pg.CopyText),
	},
	{
		name: "kind", kind: "text", in: carried, taken: asItIs, subject: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Kind = r.Name() },
		draft: draftAlways(func(d *job.Draft) string { return d.Kind }, pg.CopyText),
	},
	{
		name: "key", kind: "text", in: carried, taken: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Key = r.Text() },
		draft: draftText(func(d *job.Draft) string { return d.Key }),
	},
	{
		name: "budget", kind: "text", in: carried, taken: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Budget = r.Name() },
		draft: draftText(func(d *job.Draft) string { return d.Budget }),
	},
	{name: "flow", kind: "uuid", in: carried},
	{
		name: "unique_hash", kind: "bytea", in: carried, taken: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Unique.Hash = r.Bytes() },
		draft: draftBytes(func(d *job.Draft) []byte { return d.Unique.Hash }),
	},
	{
		name: "unique_period", kind: "bigint", in: carried, taken: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Unique.Period = r.Duration() },
		draft: draftDuration(func(d *job.Draft) time.Duration { return d.Unique.Period }),
	},
	{
		name: "capabilities", kind: "text[]", in: carried, taken: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Capabilities = r.list(j, "capabilities") },
		draft: draftList(func(d *job.Draft) []string { return d.Capabilities }),
	},
	{
		name: "tags", kind: "text[]", in: carried, taken: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Tags = r.list(j, "tags") },
		draft: draftList(func(d *job.Draft) []string { return d.Tags }),
	},
	{name: "reason", kind: "text", in: inBoth, taken: asItIs, read: func(r *RowReader, j *job.Job) { j.Reason = r.Text() }},
	{
		name: "progress_done", kind: "bigint", in: carried, taken: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Progress.Done = r.Int8() },
	},
	{
		name: "progress_total", kind: "bigint", in: carried, taken: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Progress.Total = r.Int8() },
	},
	{
		name: "progress_note", kind: "text", in: carried, taken: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Progress.Note = r.Text() },
	},
	{
		name: "headers", kind: "bytea", in: carried | isLarge, taken: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.HeaderBytes = r.largeBytes() },
		draft: draftBytes(func(d *job.Draft) []byte { return d.HeaderBytes }),
	},
	{
		name: "failures", kind: "bytea", in: carried | isLarge, taken: asItIs, subject: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Failures = job.StoredFailures(r.largeBytes()) },
	},
	{
		name: "args", kind: "bytea", in: carried | isLarge, taken: asItIs,
		read:  func(r *RowReader, j *job.Job) { j.Args = r.largeBytes() },
		draft: draftAlways(func(d *job.Draft) []byte { return d.Args }, pg.CopyBytes),
	},
	{name: "result", kind: "bytea", in: inArchive, read: func(r *RowReader, j *job.Job) { j.Result = r.Bytes() }},
	{
		name: "worker", kind: "bigint", in: inBoth, subject: orZero,
		read: func(r *RowReader, j *job.Job) { j.Worker = job.WorkerID(r.Int8()) },
	},
	{name: "claim", kind: "bigint", in: inJob},
	{name: "passed", kind: "timestamptz", in: inJob},
	{name: "begun", kind: "boolean", in: inJob, subject: asItIs},
	{
		name: "cancel", kind: "boolean", in: inJob, subject: asItIs,
		read: func(r *RowReader, j *job.Job) { j.CancelAsked = r.Bool() },
	},
	{
		name: "wait", kind: "smallint", in: inJob, subject: orZero,
		read: func(r *RowReader, j *job.Job) { j.Wait = job.Wait(r.Int2()) },
	},
	{
		name: "ties", kind: "int", in: carried, taken: notZero, subject: asItIs,
		read: func(r *RowReader, j *job.Job) { j.Ties = job.Ties(r.Int4()) },
		draft: draftIf(func(d *job.Draft) bool { return d.Ties() != 0 },
			func(d *job.Draft) int32 { return int32(d.Ties()) }, pg.CopyInt4),
	},
}

// The lists. Jobs are read alike from both tables: what one of them does not have
// is NULL there.
var (
	LiveColumns     = listed(func(c column) string { return c.readFrom(inJob) })
	ArchivedColumns = listed(func(c column) string { return c.readFrom(inArchive) })
	TakenColumns    = listed(func(c column) string { return c.as(c.taken) })
	subjectColumns  = listed(func(c column) string { return c.as(c.subject) })
	carriedColumns  = carriedFrom("", nil)
	// RowBytes is what the large columns of a job come to. The size of a value is
	// known without reading it from where it is stored.
	RowBytes = joined(" + ", func(c column) string {
		if c.in&isLarge == 0 {
			return ""
		}
		return c.as("coalesce(octet_length(%), 0)")
	})
)

func (c column) as(way string) string { return strings.ReplaceAll(way, "%", c.name) }

func (c column) readFrom(table where) string {
	switch {
	case c.read == nil:
		return ""
	case c.in&table == 0:
		return "NULL::" + c.kind + " AS " + c.name
	}
	return c.name
}

// listed lists what is selected of each column; empty means nothing.
func listed(of func(column) string) string { return joined(", ", of) }

func joined(by string, of func(column) string) string {
	var list []string
	for _, c := range columns {
		if text := of(c); text != "" {
			list = append(list, text)
		}
	}
	return strings.Join(list, by)
}

// carriedFrom lists what goes along into the archive or back, from a table or
// changed as the statement says.
func carriedFrom(table string, changed map[string]string) string {
	left := len(changed)
	list := listed(func(c column) string {
		if c.in&goesAlong == 0 {
			return ""
		}
		if text, ok := changed[c.name]; ok {
			left--
			return text + " AS " + c.name
		}
		return table + c.name
	})
	if left != 0 {
		panic("pawl: a statement changes a column that does not go along")
	}
	return list
}

// RowReader makes jobs of rows.
type RowReader struct {
	pg.Columns
	Large int64 // bytes of the large columns, of all rows
}

// What reads a row of LiveColumns or ArchivedColumns, and one of TakenColumns.
var (
	jobReaders   = readersOf(func(c column) bool { return true })
	takenReaders = readersOf(func(c column) bool { return c.taken != "" })
)

func readersOf(which func(column) bool) (list []func(*RowReader, *job.Job)) {
	for _, c := range columns {
		if c.read != nil && which(c) {
			list = append(list, c.read)
		}
	}
	return list
}

// Job reads a row of LiveColumns or ArchivedColumns into a new job.
func (r *RowReader) Job(cols [][]byte, j *job.Job) error { return r.row(cols, j, jobReaders) }

// Taken reads a row of TakenColumns into a new job.
func (r *RowReader) Taken(cols [][]byte, j *job.Job) error { return r.row(cols, j, takenReaders) }

// row reads the columns that are not NULL, half of them in most rows. What the
// statement selects behind them comes next.
func (r *RowReader) row(cols [][]byte, j *job.Job, readers []func(*RowReader, *job.Job)) error {
	r.Begin(cols)
	for i, read := range readers {
		if cols[i] != nil {
			r.Seek(i)
			read(r, j)
		}
	}
	r.Seek(len(readers))
	return r.Err
}

func (r *RowReader) id() (id job.ID) {
	copy(id[:], r.Number(16))
	return id
}

func (r *RowReader) largeBytes() []byte {
	b := r.Bytes()
	r.Large += int64(len(b))
	return b
}

// list reads a text[]. Where it has more dimensions than one, or an element is
// NULL, the job says that it cannot be read, and the rows beside it go on (P8).
func (r *RowReader) list(j *job.Job, name string) []string {
	list, ok := pg.WordsOf(r.Next())
	if !ok {
		j.Unreadable = append(j.Unreadable, name)
	}
	return list
}

// UUIDs are ids as the driver sends them.
func UUIDs(ids []job.ID) [][16]byte {
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
