package operations

import (
	"encoding/json"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

const columns = `id, state, next, pages, pace, most, looked, changed, asked, duplicate, busy, unchanged, failures,
	created, ended, verb, filter, cursor, by, note, reason`

// What finds operations: one, those that are open in the order of their time, the
// newest.
//   - The primary key; pawl_operation_open; the primary key backwards.
const (
	readOne = `SELECT ` + columns + `
	FROM pawl_operation
	WHERE namespace = ? AND id = ?`

	readOpen = `SELECT ` + columns + `
	FROM pawl_operation INDEXED BY pawl_operation_open
	WHERE namespace = ? AND state = 1
	ORDER BY next, id
	LIMIT ?`

	readNewest = `SELECT ` + columns + `
	FROM pawl_operation
	WHERE namespace = ? AND id < ?
	ORDER BY id DESC
	LIMIT ?`

	countOpen = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_operation INDEXED BY pawl_operation_open
		WHERE namespace = ? AND state = 1
		LIMIT ?)`

	anyDue = `SELECT 1
	FROM pawl_operation INDEXED BY pawl_operation_open
	WHERE namespace = ? AND state = 1 AND next <= ?
	LIMIT 1`
)

// What writes one, by primary key.
const (
	insert = `INSERT INTO pawl_operation (namespace, id, state, next, pages, pace, most, looked, changed, asked,
		duplicate, busy, unchanged, failures, created, verb, filter, cursor, by, note, reason)
	VALUES (?, ?, 1, ?, 0, ?, ?, 0, 0, 0, 0, 0, 0, 0, ?, ?, ?, '{}', ?, ?, '')`

	update = `UPDATE pawl_operation
	SET state = ?, next = ?, pages = ?, looked = ?, changed = ?, asked = ?, duplicate = ?, busy = ?, unchanged = ?,
		failures = ?, ended = ?, expires = ?, cursor = ?, reason = ?
	WHERE namespace = ? AND id = ?`
)

// Start keeps an operation; one with its id that is kept already is answered.
func Start(t *lite.Session, o store.Operation) (store.Operation, error) {
	before, found, err := one(&t.Snapshot, o.ID)
	if found || err != nil {
		return before, err
	}
	n, err := t.On(countOpen).Int(store.MaxOperations).One()
	switch {
	case err != nil:
		return o, err
	case n >= store.MaxOperations:
		return o, store.TooManyOpen()
	}
	o.Begin(lite.TimeOf(t.Now))
	verb, err := json.Marshal(o.Verb)
	if err != nil {
		return o, err
	}
	err = t.On(insert).Blob(o.ID[:]).Int(t.Now).Int(int64(o.Pace)).Int(o.Most).Int(t.Now).
		Text(string(verb)).Text(o.Filter.JSON()).Text(o.By).Text(o.Note).Exec()
	if err != nil {
		return o, err
	}
	return o, audit(t, &o, "start", store.Operator{Name: o.By, Note: o.Note})
}

// Cancel ends an open operation.
func Cancel(t *lite.Session, id job.ID, op store.Operator) (store.Operation, error) {
	o, found, err := one(&t.Snapshot, id)
	switch {
	case err != nil:
		return o, err
	case !found:
		return o, job.NotFound("operation", id)
	case o.State != store.OperationOpen:
		return o, nil
	}
	o.Cancel(op, lite.TimeOf(t.Now))
	if err := put(t, &o); err != nil {
		return o, err
	}
	return o, audit(t, &o, "cancel", op)
}

func audit(t *lite.Session, o *store.Operation, what string, op store.Operator) error {
	return settings.Audit(t, op, o.Action(what), o.ID.String(), store.Details(o.Detail()))
}

// put writes what changes of an operation.
func put(t *lite.Session, o *store.Operation) error {
	cursor, err := json.Marshal(o.Cursor)
	if err != nil {
		return err
	}
	q := t.Query(update).Int(int64(o.State)).Int(lite.Micros(o.Next)).Int(o.Pages)
	c := &o.Counts
	q.Int(c.Looked).Int(c.Changed).Int(c.Asked).Int(c.Duplicate).Int(c.Busy).Int(c.Left).Int(int64(o.Failures))
	if o.Ended.IsZero() {
		q.Null().Null()
	} else {
		q.Int(lite.Micros(o.Ended)).Int(lite.Later(lite.Micros(o.Ended), store.KeepOperation))
	}
	return q.Text(string(cursor)).Text(o.Reason).Int(t.Namespace).Blob(o.ID[:]).Exec()
}

// List reads operations.
func List(c *lite.Snapshot, p store.OperationPage) (list []store.Operation, err error) {
	var q *lite.Query
	switch {
	case p.ID != job.ID{}:
		q = c.On(readOne).Blob(p.ID[:])
	case p.Open:
		q = c.On(readOpen).Int(int64(p.Limit))
	default:
		before := p.Before
		if before == (job.ID{}) {
			before = lastID
		}
		q = c.On(readNewest).Blob(before[:]).Int(int64(p.Limit))
	}
	for q.Step() {
		list = append(list, read(q))
	}
	return list, q.Done()
}

// lastID is above all ids.
var lastID = job.ID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

func one(c *lite.Snapshot, id job.ID) (o store.Operation, found bool, err error) {
	list, err := List(c, store.OperationPage{ID: id})
	if len(list) > 0 {
		o, found = list[0], true
	}
	return o, found, err
}

// read reads a row. What this build cannot read of a verb is one that it does not
// know: it leaves the operation alone.
func read(q *lite.Query) store.Operation {
	o := store.Operation{
		ID: q.ColID(0), State: store.OperationState(q.ColInt(1)), Pages: q.ColInt(3), Pace: int(q.ColInt(4)), Most: q.ColInt(5),
		Counts: store.OperationCounts{
			Looked: q.ColInt(6), Changed: q.ColInt(7), Asked: q.ColInt(8), Duplicate: q.ColInt(9), Busy: q.ColInt(10), Left: q.ColInt(11),
		},
		Failures: int(q.ColInt(12)), Created: q.ColTime(13), Ended: q.ColTime(14), By: q.ColText(18), Note: q.ColText(19), Reason: q.ColText(20),
	}
	if o.State == store.OperationOpen {
		o.Next = q.ColTime(2)
	}
	o.Read([]byte(q.ColText(15)), []byte(q.ColText(16)), []byte(q.ColText(17)))
	return o
}

// Due says whether one may take its next page.
func Due(c *lite.Snapshot) (bool, error) { return c.On(anyDue).Int(c.Clock.Now()).Found() }
