package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// column is one column of a job, with all that is done to it beside the moves.
// The table of them names each once; every list of columns is made from it.
type column struct {
	name string
	in   tables

	// draft binds it when a job is accepted. Where given is not nil, most drafts
	// go without the column, and given says which do not.
	draft func(q *lite.Query, d arrival)
	given func(d *job.Draft) bool

	// job and subject read it, as column i of a statement.
	job     func(q *lite.Query, i int, j *job.Job)
	subject func(q *lite.Query, i int, s *subject)

	// final binds what the end of a job makes of it in the archive.
	final func(q *lite.Query, f final)
}

// tables says which tables have a column, and whether a job takes it along from
// one to the other.
type tables uint8

const (
	inLive    tables = 1 << iota // a column of pawl_job
	inArchive                    // a column of pawl_job_archive
	goesAlong                    // into the archive, when a job ends
	comesBack                    // from there, when it is retried
	isRare                       // a claim does not read it
	isTied                       // a job without ties has the archive's default

	carried = inLive | inArchive | goesAlong | comesBack
)

// arrival is a draft that is accepted, with its times.
type arrival struct {
	*job.Draft
	now, due int64
}

// final is what the archive says of the end of a job.
type final struct {
	to                job.State
	reason            string
	result            []byte
	finished, expires int64
}

// columns are in the order of the schema, so that short ones are read before long
// ones.
var columns = []column{
	{name: "namespace", in: carried},
	{
		name: "id", in: carried,
		draft:   func(q *lite.Query, d arrival) { q.Blob(d.ID[:]) },
		job:     func(q *lite.Query, i int, j *job.Job) { j.ID = q.ColID(i) },
		subject: func(q *lite.Query, i int, s *subject) { s.ID = q.ColID(i) },
	},
	{
		name: "state", in: inLive | inArchive,
		job:     func(q *lite.Query, i int, j *job.Job) { j.State = job.State(q.ColInt(i)) },
		subject: func(q *lite.Query, i int, s *subject) { s.State = job.State(q.ColInt(i)) },
		final:   func(q *lite.Query, f final) { q.Int(int64(f.to)) },
	},
	{
		name: "priority", in: carried,
		draft: func(q *lite.Query, d arrival) { q.Int(int64(d.Priority)) },
		job:   func(q *lite.Query, i int, j *job.Job) { j.Priority = int(q.ColInt(i)) },
	},
	{
		name: "due", in: carried,
		draft:   func(q *lite.Query, d arrival) { q.Int(d.due) },
		job:     func(q *lite.Query, i int, j *job.Job) { j.Due = lite.TimeOf(q.ColInt(i)) },
		subject: func(q *lite.Query, i int, s *subject) { s.Due = lite.TimeOf(q.ColInt(i)) },
	},
	{
		name: "run", in: carried,
		job:     func(q *lite.Query, i int, j *job.Job) { j.Run = q.ColInt(i) },
		subject: func(q *lite.Query, i int, s *subject) { s.Run = q.ColInt(i) },
	},
	{
		name: "worker", in: inLive | inArchive | goesAlong,
		job:     func(q *lite.Query, i int, j *job.Job) { j.Worker = job.WorkerID(q.ColInt(i)) },
		subject: func(q *lite.Query, i int, s *subject) { s.Worker = job.WorkerID(q.ColInt(i)) },
	},
	{name: "claim", in: inLive},
	{
		name: "begun", in: inLive,
		subject: func(q *lite.Query, i int, s *subject) { s.Begun = q.ColBool(i) },
	},
	{
		name: "cancel", in: inLive,
		job:     func(q *lite.Query, i int, j *job.Job) { j.CancelAsked = q.ColBool(i) },
		subject: func(q *lite.Query, i int, s *subject) { s.CancelAsked = q.ColBool(i) },
	},
	{
		name: "ties", in: carried | isTied,
		draft:   func(q *lite.Query, d arrival) { q.Int(int64(d.Ties())) },
		given:   func(d *job.Draft) bool { return d.Ties() != 0 },
		job:     func(q *lite.Query, i int, j *job.Job) { j.Ties = job.Ties(q.ColInt(i)) },
		subject: func(q *lite.Query, i int, s *subject) { s.Ties = job.Ties(q.ColInt(i)) },
	},
	{
		name: "used", in: carried,
		job:     func(q *lite.Query, i int, j *job.Job) { j.Used = int(q.ColInt(i)) },
		subject: func(q *lite.Query, i int, s *subject) { s.Used = int(q.ColInt(i)) },
	},
	{
		name: "max_attempts", in: carried,
		draft:   func(q *lite.Query, d arrival) { q.Int(int64(d.Attempts)) },
		job:     func(q *lite.Query, i int, j *job.Job) { j.MaxAttempts = int(q.ColInt(i)) },
		subject: func(q *lite.Query, i int, s *subject) { s.MaxAttempts = int(q.ColInt(i)) },
	},
	{
		name: "lost", in: carried,
		job:     func(q *lite.Query, i int, j *job.Job) { j.Lost = int(q.ColInt(i)) },
		subject: func(q *lite.Query, i int, s *subject) { s.Lost = int(q.ColInt(i)) },
	},
	{
		name: "rescues", in: carried,
		job: func(q *lite.Query, i int, j *job.Job) { j.Rescues = int(q.ColInt(i)) },
	},
	{
		name: "snoozes", in: carried,
		job: func(q *lite.Query, i int, j *job.Job) { j.Snoozes = int(q.ColInt(i)) },
	},
	{
		name: "throttles", in: carried,
		job: func(q *lite.Query, i int, j *job.Job) {
			if n := q.ColInt(i); n != 0 {
				j.Rarely().Throttles = int(n)
			}
		},
	},
	{
		name: "deferred", in: inLive,
		job: func(q *lite.Query, i int, j *job.Job) { j.Deferred = int(q.ColInt(i)) },
	},
	{
		name: "logs", in: carried | isTied,
		subject: func(q *lite.Query, i int, s *subject) { s.logs = q.ColInt(i) },
	},
	{
		name: "version", in: carried,
		draft: func(q *lite.Query, d arrival) { q.Int(int64(d.Version)) },
		job:   func(q *lite.Query, i int, j *job.Job) { j.Version = int(q.ColInt(i)) },
	},
	{
		name: "created", in: carried,
		draft: func(q *lite.Query, d arrival) { q.Int(d.now) },
		job:   func(q *lite.Query, i int, j *job.Job) { j.Created = lite.TimeOf(q.ColInt(i)) },
	},
	{
		name: "started", in: carried,
		job: func(q *lite.Query, i int, j *job.Job) { j.Started = q.ColTime(i) },
	},
	{
		name: "finished", in: inArchive,
		job:   func(q *lite.Query, i int, j *job.Job) { j.Finished = q.ColTime(i) },
		final: func(q *lite.Query, f final) { q.Int(f.finished) },
	},
	{
		name: "expires", in: inArchive,
		job:   func(q *lite.Query, i int, j *job.Job) { j.Expires = q.ColTime(i) },
		final: func(q *lite.Query, f final) { q.Int(f.expires) },
	},
	{
		name: "timeout", in: carried,
		draft: func(q *lite.Query, d arrival) { q.IntOrNull(d.Timeout.Microseconds()) },
		given: func(d *job.Draft) bool { return d.Timeout != 0 },
		job:   func(q *lite.Query, i int, j *job.Job) { j.Timeout = micros(q.ColInt(i)) },
	},
	{
		name: "deadline", in: carried,
		draft: func(q *lite.Query, d arrival) { q.TimeOrNull(d.Deadline) },
		given: func(d *job.Draft) bool { return !d.Deadline.IsZero() },
		job:   func(q *lite.Query, i int, j *job.Job) { j.Deadline = q.ColTime(i) },
	},
	{
		name: "snoozed", in: carried | isRare,
		job: func(q *lite.Query, i int, j *job.Job) {
			if at := q.ColTime(i); !at.IsZero() {
				j.Rarely().Snoozed = at
			}
		},
	},
	{
		name: "throttled", in: carried | isRare,
		job: func(q *lite.Query, i int, j *job.Job) {
			if at := q.ColTime(i); !at.IsZero() {
				j.Rarely().Throttled = at
			}
		},
	},
	{
		name: "gate", in: carried | isRare,
		draft: func(q *lite.Query, d arrival) { q.IntOrNull(d.Gate) },
		given: func(d *job.Draft) bool { return d.Gate != 0 },
		job: func(q *lite.Query, i int, j *job.Job) {
			if gate := q.ColInt(i); gate != 0 {
				j.Rarely().Gate = gate
			}
		},
	},
	{
		name: "queue", in: carried,
		draft:   func(q *lite.Query, d arrival) { q.Text(d.Queue) },
		job:     func(q *lite.Query, i int, j *job.Job) { j.Queue = q.ColText(i) },
		subject: func(q *lite.Query, i int, s *subject) { s.Queue = q.ColText(i) },
	},
	{
		name: "kind", in: carried,
		draft:   func(q *lite.Query, d arrival) { q.Text(d.Kind) },
		job:     func(q *lite.Query, i int, j *job.Job) { j.Kind = q.ColText(i) },
		subject: func(q *lite.Query, i int, s *subject) { s.Kind = q.ColText(i) },
	},
	{
		name: `"key"`, in: carried,
		draft: func(q *lite.Query, d arrival) { q.TextOrNull(d.Key) },
		given: func(d *job.Draft) bool { return d.Key != "" },
		job:   func(q *lite.Query, i int, j *job.Job) { j.Key = q.ColText(i) },
	},
	{
		name: "budget", in: carried,
		draft: func(q *lite.Query, d arrival) { q.TextOrNull(d.Budget) },
		given: func(d *job.Draft) bool { return d.Budget != "" },
		job:   func(q *lite.Query, i int, j *job.Job) { j.Budget = q.ColText(i) },
	},
	{name: "flow", in: carried | isTied},
	{name: "node", in: carried | isTied},
	{
		name: "unique_hash", in: carried | isTied,
		draft:   func(q *lite.Query, d arrival) { q.BlobOrNull(d.Unique.Hash) },
		given:   func(d *job.Draft) bool { return d.Unique.Hash != nil },
		job:     func(q *lite.Query, i int, j *job.Job) { j.Unique.Hash = q.ColBlob(i) },
		subject: func(q *lite.Query, i int, s *subject) { s.hash = q.ColBlob(i) },
	},
	{
		name: "unique_period", in: carried | isTied,
		draft:   func(q *lite.Query, d arrival) { q.IntOrNull(d.Unique.Period.Microseconds()) },
		given:   func(d *job.Draft) bool { return d.Unique.Hash != nil },
		job:     func(q *lite.Query, i int, j *job.Job) { j.Unique.Period = micros(q.ColInt(i)) },
		subject: func(q *lite.Query, i int, s *subject) { s.period = q.ColInt(i) },
	},
	{
		name: "capabilities", in: carried,
		draft: func(q *lite.Query, d arrival) { q.TextOrNull(words(d.Capabilities)) },
		given: func(d *job.Draft) bool { return len(d.Capabilities) > 0 },
		job:   func(q *lite.Query, i int, j *job.Job) { j.Capabilities = readWords(q, i, j, "capabilities") },
	},
	{
		name: "tags", in: carried,
		draft: func(q *lite.Query, d arrival) { q.TextOrNull(words(d.Tags)) },
		given: func(d *job.Draft) bool { return len(d.Tags) > 0 },
		job:   func(q *lite.Query, i int, j *job.Job) { j.Tags = readWords(q, i, j, "tags") },
	},
	{
		name: "wait", in: inLive,
		job: func(q *lite.Query, i int, j *job.Job) {
			if j.State == job.Suspended {
				j.Wait = job.Wait(q.ColInt(i))
			}
		},
		subject: func(q *lite.Query, i int, s *subject) { s.Wait = job.Wait(q.ColInt(i)) },
	},
	{
		name: "reason", in: inLive | inArchive,
		job:   func(q *lite.Query, i int, j *job.Job) { j.Reason = q.ColText(i) },
		final: func(q *lite.Query, f final) { q.TextOrNull(f.reason) },
	},
	{
		name: "progress_done", in: carried,
		job: func(q *lite.Query, i int, j *job.Job) { j.Progress.Done = q.ColInt(i) },
	},
	{
		name: "progress_total", in: carried,
		job: func(q *lite.Query, i int, j *job.Job) { j.Progress.Total = q.ColInt(i) },
	},
	{
		name: "progress_note", in: carried,
		job: func(q *lite.Query, i int, j *job.Job) { j.Progress.Note = q.ColText(i) },
	},
	{
		name: "headers", in: carried,
		draft: func(q *lite.Query, d arrival) { q.BlobOrNull(d.HeaderBytes) },
		given: func(d *job.Draft) bool { return d.HeaderBytes != nil },
		job:   func(q *lite.Query, i int, j *job.Job) { j.HeaderBytes = q.ColBlob(i) },
	},
	{
		name: "failures", in: carried,
		job:     func(q *lite.Query, i int, j *job.Job) { j.Failures = job.StoredFailures(q.ColBlob(i)) },
		subject: func(q *lite.Query, i int, s *subject) { s.Failures = q.ColBlob(i) },
	},
	{
		name: "args", in: carried,
		draft: func(q *lite.Query, d arrival) { q.BlobOrNull(d.Args) },
		job:   func(q *lite.Query, i int, j *job.Job) { j.Args = q.ColBlob(i) },
	},
	{
		name: "result", in: inArchive,
		job:   func(q *lite.Query, i int, j *job.Job) { j.Result = q.ColBlob(i) },
		final: func(q *lite.Query, f final) { q.BlobOrNull(f.result) },
	},
}

func (c *column) is(in tables) bool { return c.in&in == in }

// choice is some of the columns, in their order.
type choice []*column

func choose(has func(*column) bool) (list choice) {
	for i := range columns {
		if c := &columns[i]; has(c) {
			list = append(list, c)
		}
	}
	return list
}

// names lists them, as SQL does; parameters lists a question mark for each.
func (list choice) names() string      { return list.join(func(c *column) string { return c.name }) }
func (list choice) parameters() string { return list.join(func(*column) string { return "?" }) }

func (list choice) join(word func(*column) string) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = word(c)
	}
	return strings.Join(words, ", ")
}

// Row is the columns of a table that are read into a T.
type Row[T any] struct {
	Columns string // as SQL lists them
	list    choice
	read    []func(*lite.Query, int, *T)
}

var (
	// LiveRow is a live job, TakenRow what a claim reads of it.
	LiveRow  = rowOf(inLive, func(c *column) func(*lite.Query, int, *job.Job) { return c.job })
	TakenRow = rowOf(inLive, func(c *column) func(*lite.Query, int, *job.Job) {
		if c.is(isRare) {
			return nil
		}
		return c.job
	})
	ArchivedRow = rowOf(inArchive, func(c *column) func(*lite.Query, int, *job.Job) { return c.job })
	subjectRow  = rowOf(inLive, func(c *column) func(*lite.Query, int, *subject) { return c.subject })
)

func rowOf[T any](in tables, reader func(*column) func(*lite.Query, int, *T)) *Row[T] {
	list := choose(func(c *column) bool { return c.is(in) && reader(c) != nil })
	r := &Row[T]{Columns: list.names(), list: list}
	for _, c := range list {
		r.read = append(r.read, reader(c))
	}
	return r
}

// Read reads the row that a statement of the columns stands on into a T that is
// empty. It cannot fail: a part that cannot be read costs that part, not the rows
// beside it (P8).
func (r *Row[T]) Read(q *lite.Query, to *T) {
	for i, read := range r.read {
		read(q, i, to)
	}
}

// Len is how many columns there are.
func (r *Row[T]) Len() int { return len(r.read) }

// At is where a column is among them.
func (r *Row[T]) At(name string) int {
	i := slices.IndexFunc(r.list, func(c *column) bool { return c.name == name })
	if i < 0 { // asked when the program starts
		panic(fmt.Sprintf("sqlite: column %s is not read", name))
	}
	return i
}

// Large is what the large columns of a row come to that was read into a job.
func Large(j *job.Job) int64 {
	return int64(len(j.HeaderBytes) + len(j.Args) + len(j.Failures.Stored()))
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// readWords reads a list of names; a job says so whose list cannot be read.
func readWords(q *lite.Query, i int, j *job.Job, name string) []string {
	list, err := ParseWords(q.ColText(i))
	if err != nil {
		j.Unreadable = append(j.Unreadable, name)
	}
	return list
}
