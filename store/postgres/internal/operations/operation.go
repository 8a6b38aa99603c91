package operations

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

const columns = `id, state, next, pages, pace, most, looked, changed, asked, duplicate, busy, unchanged, failures,
	created, ended, verb, filter, cursor, by, note, reason`

// What finds operations: one, those that are open in the order of their time, the
// newest.
//
//   - operation_pkey; operation_open; operation_pkey backwards.
const (
	readOne = `SELECT ` + columns + `
FROM pawl.operation
WHERE namespace = $1 AND id = $2`

	lockOne = readOne + `
FOR UPDATE`

	readOpen = `SELECT ` + columns + `
FROM pawl.operation
WHERE namespace = $1 AND state = 1
ORDER BY next, id
LIMIT $2`

	readNewest = `SELECT ` + columns + `
FROM pawl.operation
WHERE namespace = $1 AND id < $2
ORDER BY id DESC
LIMIT $3`

	countOpen = `SELECT count(*)
FROM (
	SELECT 1
	FROM pawl.operation
	WHERE namespace = $1 AND state = 1
	ORDER BY next
	LIMIT $2
) AS o`
)

// What writes one (operation_pkey).
const (
	insert = `INSERT INTO pawl.operation (namespace, id, state, next, pages, pace, most, looked, changed, asked,
	duplicate, busy, unchanged, failures, created, verb, filter, cursor, by, note, reason)
VALUES ($1, $2, 1, $3, 0, $4, $5, 0, 0, 0, 0, 0, 0, 0, $3, $6, $7, '{}', $8, $9, '')
ON CONFLICT (namespace, id) DO NOTHING`

	update = `UPDATE pawl.operation
SET state = $3, next = $4, pages = $5, looked = $6, changed = $7, asked = $8, duplicate = $9, busy = $10,
	unchanged = $11, failures = $12, ended = $13, expires = $14, cursor = $15, reason = $16
WHERE namespace = $1 AND id = $2`
)

// Start keeps an operation; one with its id that is kept already is answered.
func (r *Room) Start(ctx context.Context, o store.Operation) (store.Operation, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return o, err
	}
	defer r.pg.Leave()
	o.By, o.Note = pg.Legible(o.By), pg.Legible(o.Note)
	kept := o
	err := r.pg.Retry(ctx, "start an operation", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			open, now, list := 0, time.Time{}, []store.Operation(nil)
			err := t.Run(ctx, r.find(&list, readOne, [16]byte(o.ID)),
				&pg.Statement{Text: countOpen, Args: []any{r.pg.Namespace, store.MaxOperations}, Each: func(scan pg.Scan) error { return scan(&open) }},
				clock(&now))
			switch {
			case err != nil:
				return err
			case len(list) > 0:
				kept = list[0]
				return nil
			case open >= store.MaxOperations:
				return store.TooManyOpen()
			}
			kept = o
			kept.Begin(now)
			verb, err := json.Marshal(o.Verb)
			if err != nil {
				return err
			}
			add := &pg.Statement{Text: insert, Args: []any{
				r.pg.Namespace, [16]byte(o.ID), now, o.Pace, o.Most, verb, []byte(kept.Filter.JSON()), o.By, o.Note,
			}}
			if err := t.Run(ctx, add); err != nil {
				return err
			}
			return r.audit(ctx, t, &kept, "start", store.Operator{Name: o.By, Note: o.Note})
		})
	})
	return kept, err
}

// Cancel ends an open operation.
func (r *Room) Cancel(ctx context.Context, id job.ID, op store.Operator) (o store.Operation, err error) {
	if err := r.pg.Enter(ctx); err != nil {
		return o, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "cancel an operation", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			var now time.Time
			if o, now, err = r.lock(ctx, t, id); err != nil || o.State != store.OperationOpen {
				return err
			}
			o.Cancel(op, now)
			if err := r.put(ctx, t, &o); err != nil {
				return err
			}
			return r.audit(ctx, t, &o, "cancel", op)
		})
	})
	return o, err
}

func (r *Room) audit(ctx context.Context, in pg.Session, o *store.Operation, what string, op store.Operator) error {
	return r.settings.Record(ctx, in, op, o.Action(what), []string{o.ID.String()}, []string{pg.Legible(store.Details(o.Detail()))})
}

// lock locks an operation, and reads the clock after that.
func (r *Room) lock(ctx context.Context, in pg.Session, id job.ID) (o store.Operation, now time.Time, err error) {
	var list []store.Operation
	if err := in.Run(ctx, r.find(&list, lockOne, [16]byte(id)), clock(&now)); err != nil {
		return o, now, err
	}
	if len(list) == 0 {
		return o, now, job.NotFound("operation", id)
	}
	return list[0], now, nil
}

func clock(now *time.Time) *pg.Statement {
	return &pg.Statement{Text: "SELECT {now}", Each: func(scan pg.Scan) error {
		err := scan(now)
		*now = now.UTC()
		return err
	}}
}

// put writes what changes of an operation.
func (r *Room) put(ctx context.Context, in pg.Session, o *store.Operation) error {
	cursor, err := json.Marshal(o.Cursor)
	if err != nil {
		return err
	}
	var ended, expires *time.Time
	next := o.Next
	if !o.Ended.IsZero() {
		at := o.Ended.Add(store.KeepOperation)
		ended, expires, next = &o.Ended, &at, o.Ended
	}
	c := &o.Counts
	return in.Run(ctx, &pg.Statement{Text: update, Args: []any{
		r.pg.Namespace, [16]byte(o.ID), int16(o.State), next, o.Pages, c.Looked, c.Changed, c.Asked, c.Duplicate, c.Busy, c.Left,
		o.Failures, ended, expires, cursor, pg.Legible(o.Reason),
	}})
}

// lastID is above all ids.
var lastID = [16]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// List reads operations.
func (r *Room) List(ctx context.Context, p store.OperationPage) (list []store.Operation, err error) {
	text, args := readNewest, []any{lastID, p.Limit}
	switch {
	case p.ID != job.ID{}:
		text, args = readOne, []any{[16]byte(p.ID)}
	case p.Open:
		text, args = readOpen, []any{p.Limit}
	case p.Before != job.ID{}:
		args[0] = [16]byte(p.Before)
	}
	err = r.pg.Read(ctx, func() []*pg.Statement {
		list = nil
		return []*pg.Statement{r.find(&list, text, args...)}
	})
	return list, err
}

// find is a statement that reads operations. What this build cannot read of a verb is
// one that it does not know: it leaves the operation alone.
func (r *Room) find(list *[]store.Operation, text string, args ...any) *pg.Statement {
	return &pg.Statement{Text: text, Args: append([]any{r.pg.Namespace}, args...), Each: func(scan pg.Scan) error {
		var o store.Operation
		var ended *time.Time
		var verb, filter, cursor []byte
		c := &o.Counts
		err := scan((*[16]byte)(&o.ID), &o.State, &o.Next, &o.Pages, &o.Pace, &o.Most, &c.Looked, &c.Changed, &c.Asked, &c.Duplicate, &c.Busy, &c.Left,
			&o.Failures, &o.Created, &ended, &verb, &filter, &cursor, &o.By, &o.Note, &o.Reason)
		o.Created, o.Next = o.Created.UTC(), o.Next.UTC()
		if ended != nil {
			o.Ended, o.Next = ended.UTC(), time.Time{}
		}
		o.Read(verb, filter, cursor)
		*list = append(*list, o)
		return err
	}}
}
