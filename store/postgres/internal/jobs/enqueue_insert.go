package jobs

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// setter is how an enqueue sets a column.
type setter struct {
	// used tells whether a draft needs the column at all; nil means always. What
	// no draft of a batch needs is left out of the statement: most jobs use a
	// third of the columns, and an array of NULLs costs as much as one of values.
	used func(*job.Draft) bool
	// values makes the array for a batch.
	values func([]job.Draft) any
	// copied appends the value of one row as COPY wants it; nil for the columns
	// from which the due time is made.
	copied func(b []byte, d *job.Draft) []byte
}

func each[T any](drafts []job.Draft, f func(*job.Draft) T) []T {
	list := make([]T, len(drafts))
	for i := range drafts {
		list[i] = f(&drafts[i])
	}
	return list
}

// draftIf is for a column that only some jobs use.
func draftIf[T any](used func(*job.Draft) bool, value func(*job.Draft) T, copied func([]byte, T) []byte) setter {
	return setter{
		used:   used,
		values: func(drafts []job.Draft) any { return each(drafts, value) },
		copied: func(b []byte, d *job.Draft) []byte { return copied(b, value(d)) },
	}
}

// draftAlways is for a column that every insert has.
func draftAlways[T any](value func(*job.Draft) T, copied func([]byte, T) []byte) setter {
	return draftIf(nil, value, copied)
}

// draftText is for a text; empty means none.
func draftText(of func(*job.Draft) string) setter {
	return draftIf(func(d *job.Draft) bool { return of(d) != "" },
		func(d *job.Draft) pgtype.Text { return textOrNull(of(d)) }, pg.CopyNullText)
}

// draftBytes is for bytes; nil means none.
func draftBytes(of func(*job.Draft) []byte) setter {
	return draftIf(func(d *job.Draft) bool { return of(d) != nil }, of, pg.CopyBytes)
}

// draftDuration is for a duration; zero means none.
func draftDuration(of func(*job.Draft) time.Duration) setter {
	return draftIf(func(d *job.Draft) bool { return of(d) != 0 },
		func(d *job.Draft) pgtype.Int8 { return microsOrNull(of(d)) }, pg.CopyNullInt8)
}

// draftList is for a list of names. It travels as text: unnest flattens arrays of
// arrays.
func draftList(of func(*job.Draft) []string) setter {
	set := draftIf(func(d *job.Draft) bool { return len(of(d)) > 0 },
		func(d *job.Draft) pgtype.Text { return words(of(d)) }, pg.CopyNullText)
	set.copied = func(b []byte, d *job.Draft) []byte { return pg.CopyList(b, of(d)) }
	return set
}

func textOrNull(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }
func microsOrNull(d time.Duration) pgtype.Int8 {
	return pgtype.Int8{Int64: d.Microseconds(), Valid: d != 0}
}
func timeOrNull(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

// words writes a list of names as a Postgres array.
func words(list []string) pgtype.Text {
	if len(list) == 0 {
		return pgtype.Text{}
	}
	var b strings.Builder
	for i, w := range list {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteByte('"')
		for _, r := range []byte(w) {
			if r == '"' || r == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(r)
		}
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return pgtype.Text{String: b.String(), Valid: true}
}

// draftColumn is a column of a new job, or one from which its due time is made.
type draftColumn struct {
	name, kind string
	setter
}

// draftColumns are in the order of the arguments.
var draftColumns = append(columnsOfDrafts(),
	draftColumn{"delay", "bigint", setter{ // due so long after now, or at a time
		used: func(d *job.Draft) bool { return d.At.IsZero() && d.In > 0 },
		values: func(drafts []job.Draft) any {
			return each(drafts, func(d *job.Draft) pgtype.Int8 {
				return pgtype.Int8{Int64: d.In.Microseconds(), Valid: d.At.IsZero() && d.In > 0}
			})
		},
	}},
	draftColumn{"at", "timestamptz", setter{
		used: func(d *job.Draft) bool { return !d.At.IsZero() },
		values: func(drafts []job.Draft) any {
			return each(drafts, func(d *job.Draft) pgtype.Timestamptz { return timeOrNull(d.At) })
		},
	}},
)

func columnsOfDrafts() (list []draftColumn) {
	for _, c := range columns {
		if c.draft.values != nil {
			list = append(list, draftColumn{c.name, c.kind, c.draft})
		}
	}
	return list
}

// usedColumns is the set of columns that a batch needs, as bits.
func usedColumns(drafts []job.Draft) uint32 {
	var used uint32
	for n, c := range draftColumns {
		if c.used == nil {
			used |= 1 << n
			continue
		}
		for i := range drafts {
			if c.used(&drafts[i]) {
				used |= 1 << n
				break
			}
		}
	}
	return used
}

// insertMode says what an insert does about ids that are there already.
type insertMode uint8

const (
	// insertFresh fails on one, and answers the store's time.
	insertFresh insertMode = iota
	// insertDurable is the same where the session is not the store's own: alone in
	// its transaction, the insert sets what it needs itself.
	insertDurable
	// insertNew leaves those out, and answers what went in.
	insertNew
)

type insertKind struct {
	used   uint32
	mode   insertMode
	begins bool // some of the drafts ask to begin (J34)
}

var insertTexts sync.Map // insertKind → string

// insertStep puts drafts in with one statement, each column as an array. Which of them
// begin, where some ask for that, is noted in begun.
func insertStep(namespace int32, drafts []job.Draft, mode insertMode, begun *begun) *pg.Statement {
	kind := insertKind{usedColumns(drafts), mode, begun.asked()}
	args := make([]any, 0, 5+len(draftColumns))
	args = append(args, namespace)
	for n, c := range draftColumns {
		if kind.used&(1<<n) != 0 {
			args = append(args, c.values(drafts))
		}
	}
	if kind.begins {
		args = append(args, begun.workers, begun.revisions, begun.queues)
	}
	text, ok := insertTexts.Load(kind)
	if !ok {
		text, _ = insertTexts.LoadOrStore(kind, insertText(kind))
	}
	return &pg.Statement{Text: text.(string), Args: args}
}

// insertText writes the statement for a set of columns.
func insertText(kind insertKind) string {
	var into, from, arrays, names []string
	array := func(element string) string {
		arrays = append(arrays, "$"+strconv.Itoa(len(arrays)+2)+"::"+element+"[]")
		return arrays[len(arrays)-1]
	}
	delay, at := false, false
	for n, c := range draftColumns {
		if kind.used&(1<<n) == 0 {
			continue
		}
		element, cast := c.kind, ""
		if element == "text[]" {
			element, cast = "text", "::text[]"
		}
		array(element)
		names = append(names, c.name)
		switch c.name {
		case "delay":
			delay = true
		case "at":
			at = true
		default:
			into, from = append(into, c.name), append(from, "d."+c.name+cast)
		}
	}
	// A row that enters waiting is due now at the earliest: a frontier that has
	// passed its due time would not see it.
	due := "{now}"
	switch {
	case delay && at:
		due = "greatest({now}, coalesce(d.at, {now} + d.delay * interval '1 microsecond'))"
	case delay:
		due = "coalesce({now} + d.delay * interval '1 microsecond', {now})"
	case at:
		due = "greatest({now}, d.at)"
	}
	var with []string
	source := ""
	if kind.mode == insertDurable {
		with, source = append(with, "durable AS MATERIALIZED (SELECT "+pg.Durability+")"), "durable CROSS JOIN "
	}
	state, join := "2", ""
	if kind.begins {
		workers := array("bigint")
		names = append(names, "worker")
		array("bigint")
		names = append(names, "revision")
		queues := "$" + strconv.Itoa(len(arrays)+2) + "::text[]"
		with = append(with, beginners(workers, queues))
		state, join = "CASE WHEN b.id IS NULL THEN 2 ELSE 3 END", beginnersOf
		into = append(into, "run", "worker", "claim", "started")
		from = append(from, "(b.id IS NOT NULL)::int", "b.id", "CASE WHEN b.id IS NOT NULL THEN 0 END", "CASE WHEN b.id IS NOT NULL THEN {now} END")
	}
	insert := "INSERT INTO pawl.job (namespace, state, due, created, " + strings.Join(into, ", ") + ")\n" +
		"SELECT $1, " + state + ", " + due + ", {now}, " + strings.Join(from, ", ") + "\n" +
		"FROM " + source + "unnest(" + strings.Join(arrays, ", ") + ") AS d (" + strings.Join(names, ", ") + ")" + join
	answer := "\nSELECT {now}"
	switch {
	case kind.mode == insertNew:
		insert += "\nON CONFLICT (namespace, id) DO NOTHING\nRETURNING id, due, state = 3"
		if len(with) > 0 {
			insert = "WITH " + strings.Join(with, ", ") + "\n" + insert
		}
		return insert
	case kind.begins:
		insert += "\nRETURNING id, state"
		answer += ", ARRAY(SELECT id FROM added WHERE state = 3)"
	}
	with = append(with, "added AS ("+insert+")")
	return "WITH " + strings.Join(with, ", ") + answer
}

// begun is what becomes of the drafts of a commit that ask to begin in it (J34). Nil is
// for one without any.
type begun struct {
	drafts    []job.Draft
	workers   []int64  // of each draft, 0 where it does not ask
	revisions []int64  // likewise
	queues    []string // of those that ask, each once
	ids       map[job.ID]time.Time
}

// newBegun is for drafts; nil where none asks.
func newBegun(drafts []job.Draft) *begun {
	if !slices.ContainsFunc(drafts, func(d job.Draft) bool { return d.HandOver != nil }) {
		return nil
	}
	b := &begun{drafts: drafts, workers: make([]int64, len(drafts)), revisions: make([]int64, len(drafts)), ids: map[job.ID]time.Time{}}
	for i := range drafts {
		if h := drafts[i].HandOver; h != nil {
			b.workers[i], b.revisions[i] = int64(h.Worker), h.Revision
			if !slices.Contains(b.queues, drafts[i].Queue) {
				b.queues = append(b.queues, drafts[i].Queue)
			}
		}
	}
	return b
}

func (b *begun) asked() bool { return b != nil }

// beginners are the workers for which drafts may begin, with the revision of the
// settings by which they may. A worker's row is locked FOR SHARE: nobody can declare it
// lost between this decision and the commit.
//
//   - worker_pkey, namespace_pkey and cool_down_pkey: a seek for each worker, one for
//     the revision, one for each queue.
func beginners(workers, queues string) string {
	return `beginner AS MATERIALIZED (
	SELECT id, ` + settings.Revision + ` AS revision, ARRAY(` + settings.CoolingNames(queues) + `) AS cooling
	FROM pawl.worker
	WHERE namespace = $1 AND id = ANY (` + workers + `) AND lost IS NULL
	ORDER BY id
	FOR SHARE
)`
}

// beginnersOf joins them to drafts d.
const beginnersOf = `
LEFT JOIN beginner AS b ON b.id = d.worker AND b.revision = d.revision AND d.queue <> ALL (b.cooling)`

// scan reads the answer of a fresh insert: the time, and who began.
func (b *begun) scan(scan pg.Scan, now *time.Time) error {
	if b == nil {
		return scan(now)
	}
	var ids [][16]byte
	if err := scan(now, &ids); err != nil {
		return err
	}
	clear(b.ids) // of another try
	for _, id := range ids {
		b.ids[id] = *now
	}
	return nil
}

// asks reports whether a job asked to begin for a worker.
func (b *begun) asks(id job.ID, w job.WorkerID) bool {
	return b != nil && slices.ContainsFunc(b.drafts, func(d job.Draft) bool { return d.ID == id && d.HandOver != nil && d.HandOver.Worker == w })
}

// add notes that a job began, if its draft asked for that.
func (b *begun) add(id job.ID, started time.Time) {
	if b != nil {
		b.ids[id] = started
	}
}

// undone notes that a job was taken back by the transaction in which it began.
func (b *begun) undone(id job.ID) {
	if b != nil {
		delete(b.ids, id)
	}
}

// has reports whether a job began.
func (b *begun) has(id job.ID) bool {
	if b == nil {
		return false
	}
	_, ok := b.ids[id]
	return ok
}

// started is when a job began, zero if it did not.
func (b *begun) started(id job.ID) time.Time {
	at, ok := b.ids[id]
	if !ok {
		return time.Time{}
	}
	return at.UTC()
}

// waiting are the drafts that claims are to be told of.
func (b *begun) waiting(drafts []job.Draft) []job.Draft {
	switch {
	case b == nil || len(b.ids) == 0:
		return drafts
	case len(b.ids) == len(drafts):
		return nil
	}
	return slices.DeleteFunc(slices.Clone(drafts), func(d job.Draft) bool { return b.has(d.ID) })
}

// settle tells what became of them. It is called once the commit is answered, and
// before its callers are.
func (b *begun) settle() {
	if b == nil {
		return
	}
	for i := range b.drafts {
		if h := b.drafts[i].HandOver; h != nil {
			h.Settle(job.HandedOver{Started: b.started(b.drafts[i].ID)})
		}
	}
}

// enqueueBulk takes many drafts of one caller in, in one transaction of their
// own. Where nothing can conflict they go straight into the table by COPY.
// Otherwise keys and ids are settled first and the rest goes in by a few large
// inserts: a staging table was not faster than arrays, and needs the right to
// make temporary tables (docs/adr/0008-postgres-bulk.md).
func (r *Room) enqueueBulk(ctx context.Context, c *EnqueueCall, plain bool) error {
	if !plain || c.again {
		return r.acceptAlone(ctx, c, pg.SharedLimits)
	}
	drafts := c.Drafts
	var now time.Time
	unknown := false
	err := r.pg.RetryWithin(ctx, r.pg.TryTimeout+loading(c.weight), "enqueue", pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		err := r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error { return r.copyIn(ctx, t, drafts, &now) })
		unknown = unknown || pg.FaultOf(err).Unknown
		return err
	})
	switch {
	case err == nil:
		c.Receipts = make([]job.Receipt, len(drafts))
		for i := range drafts {
			c.Receipts[i].ID = drafts[i].ID
		}
		r.accepted(drafts, now)
		return nil
	case ctx.Err() == nil && (unknown || pg.HasCode(err, uniqueViolation)):
		c.again = unknown
		return r.acceptAlone(ctx, c, pg.SharedLimits)
	}
	return err
}

// copyIn copies plain drafts into the table. COPY computes nothing, so the
// store's time is asked first.
func (r *Room) copyIn(ctx context.Context, t *pg.Transaction, drafts []job.Draft, now *time.Time) error {
	err := t.Run(ctx, &pg.Statement{Text: "SELECT {now}", Each: func(scan pg.Scan) error { return scan(now) }})
	if err != nil {
		return err
	}
	used := usedColumns(drafts)
	copied := &copyReader{namespace: r.pg.Namespace, drafts: drafts, now: *now}
	names := []string{"namespace", "state", "due", "created"}
	for n, c := range draftColumns {
		if used&(1<<n) != 0 && c.copied != nil {
			names, copied.columns = append(names, c.name), append(copied.columns, c)
		}
	}
	copied.rest = append(copied.rest, pg.CopySignature...)
	text := "COPY pawl.job (" + strings.Join(names, ", ") + ") FROM STDIN (FORMAT binary)"
	return t.CopyFrom(ctx, copied, text)
}

// copyReader writes drafts as the server reads them from COPY. (Value by value
// through pgx, a row costs eight times as much.)
type copyReader struct {
	namespace int32
	now       time.Time
	drafts    []job.Draft
	columns   []draftColumn
	rest      []byte // what is written and not read yet
	at        int    // the next draft
	ended     bool
}

func (r *copyReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		r.fill(len(b))
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fill writes rows until there is enough for one read.
func (r *copyReader) fill(enough int) {
	buffer := r.rest[:0]
	for ; r.at < len(r.drafts) && len(buffer) < enough; r.at++ {
		d := &r.drafts[r.at]
		buffer = pg.AppendInt2(buffer, int16(4+len(r.columns)))
		buffer = pg.CopyInt4(buffer, r.namespace)
		buffer = pg.CopyInt2(buffer, int16(job.Waiting))
		buffer = pg.CopyTime(buffer, dueOf(d, r.now))
		buffer = pg.CopyTime(buffer, r.now)
		for n := range r.columns {
			buffer = r.columns[n].copied(buffer, d)
		}
	}
	if r.at == len(r.drafts) {
		buffer = pg.AppendInt2(buffer, -1)
		r.ended = true
	}
	r.rest = buffer
}
