package log

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// addCursor makes one ($2), once. Who makes it also gives it its first row, below.
	//
	//   - cursor_pkey.
	addCursor = `WITH made AS (
	INSERT INTO pawl.cursor (namespace, name, filter, made)
	VALUES ($1, $2, $3, {now})
	ON CONFLICT DO NOTHING
	RETURNING id
)
INSERT INTO pawl.cursor_at (namespace, cursor, turn, epoch, seq, holder)
SELECT $1, id, 0, $4, $5, '00000000-0000-0000-0000-000000000000'
FROM made`

	// lockCursor reads one for whoever opens or sets it: they go one after the other.
	//
	//   - cursor_pkey.
	lockCursor = `SELECT id, filter
FROM pawl.cursor
WHERE namespace = $1 AND name = $2
FOR NO KEY UPDATE`

	// lockCursorAt reads where a cursor ($2) is: the highest turn is the one that lives.
	//
	//   - cursor_at_pkey, backwards: old versions of the row lie behind it.
	lockCursorAt = `SELECT turn, epoch, seq, losses, holder, until, {now}, (SELECT epoch FROM pawl.epoch)
FROM pawl.cursor_at
WHERE namespace = $1 AND cursor = $2
ORDER BY namespace DESC, cursor DESC, turn DESC
LIMIT 1
FOR UPDATE`

	// putCursor writes what a rule made of it.
	//
	//   - cursor_at_pkey.
	putCursor = `UPDATE pawl.cursor_at
SET turn = $4, epoch = $5, seq = $6, losses = $7, holder = $8, until = $9, moved = coalesce($10, moved)
WHERE namespace = $1 AND cursor = $2 AND turn = $3`

	// ofCursor finds a row by what its holder knows.
	//
	//   - cursor_pkey, cursor_at_pkey.
	ofCursor = `
WHERE namespace = $1
	AND cursor = (SELECT c.id FROM pawl.cursor AS c WHERE c.namespace = $1 AND c.name = $2)
	AND turn = $3
	AND holder = $4`

	// moveCursor moves one, where its position is of this epoch of the log, on its server:
	// whoever read it on another one may have read what is not there.
	moveCursor = `UPDATE pawl.cursor_at
SET turn = turn + 1, epoch = $5, seq = $6, losses = $8, until = {now} + $7 * interval '1 microsecond', moved = {now},
	trimmed = CASE WHEN $9 THEN {now} ELSE trimmed END` +
		ofCursor + `
	AND ($5 = 0 OR $5 = (SELECT e.epoch FROM pawl.epoch AS e WHERE ` + sameServer + `))`

	// movedCursor looks whether a move has happened whose answer was lost.
	movedCursor = `SELECT 1
FROM pawl.cursor_at` + ofCursor + `
	AND epoch = $5
	AND seq = $6`

	renewCursor = `UPDATE pawl.cursor_at
SET until = {now} + $5 * interval '1 microsecond'` + ofCursor

	freeCursor = `UPDATE pawl.cursor_at
SET until = NULL, holder = '00000000-0000-0000-0000-000000000000'` + ofCursor

	// listCursors reads them by name, after one ($2).
	//
	//   - cursor_pkey, and cursor_at_pkey backwards for each.
	listCursors = `SELECT c.name, c.filter, c.made, a.turn, a.epoch, a.seq, a.losses, a.until, a.moved, a.trimmed,
	(SELECT epoch FROM pawl.epoch)
FROM (
	SELECT *
	FROM pawl.cursor
	WHERE namespace = $1 AND name > $2
	ORDER BY namespace, name
	LIMIT $3
) AS c` + whereItIs + `
ORDER BY c.name`

	oneCursor = `SELECT c.name, c.filter, c.made, a.turn, a.epoch, a.seq, a.losses, a.until, a.moved, a.trimmed,
	(SELECT epoch FROM pawl.epoch)
FROM pawl.cursor AS c` + whereItIs + `
WHERE c.namespace = $1 AND c.name = $2`

	whereItIs = `
CROSS JOIN LATERAL (
	SELECT *
	FROM pawl.cursor_at AS a
	WHERE a.namespace = c.namespace AND a.cursor = c.id
	ORDER BY a.namespace DESC, a.cursor DESC, a.turn DESC
	LIMIT 1
) AS a`

	deleteCursor = `WITH gone AS (
	DELETE FROM pawl.cursor
	WHERE namespace = $1 AND id = $2
)
DELETE FROM pawl.cursor_at
WHERE namespace = $1 AND cursor = $2`
)

func micros(d time.Duration) pgtype.Int8 {
	return pgtype.Int8{Int64: d.Microseconds(), Valid: d > 0}
}

func timeOrNull(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

// cursorLock is a cursor that is locked.
type cursorLock struct {
	id    int64
	row   store.CursorRow
	was   int64 // turn
	now   time.Time
	epoch uint32
}

// lockCursor locks one in a transaction; nil where there is none.
func (r *Room) lockCursor(ctx context.Context, t pg.Session, name string) (*cursorLock, error) {
	l := &cursorLock{}
	found := false
	err := t.Run(ctx, &pg.Statement{Text: lockCursor, Args: []any{r.pg.Namespace, name}, Each: func(scan pg.Scan) error {
		found = true
		return scan(&l.id, &l.row.Filter)
	}})
	if err != nil || !found {
		return nil, err
	}
	found = false
	err = t.Run(ctx, &pg.Statement{Text: lockCursorAt, Args: []any{r.pg.Namespace, l.id}, Each: func(scan pg.Scan) error {
		var until pgtype.Timestamptz
		found = true
		w := &l.row
		err := scan(&w.Turn, &w.Epoch, &w.Seq, &w.Losses, &w.Holder, &until, &l.now, &l.epoch)
		w.Until, l.was = until.Time, w.Turn
		return err
	}})
	if err == nil && !found {
		err = fmt.Errorf("%w: cursor %q has no position", store.ErrCorrupt, name)
	}
	return l, err
}

// put writes what became of a cursor.
func (r *Room) put(l *cursorLock, moved time.Time) *pg.Statement {
	w := &l.row
	return &pg.Statement{Text: putCursor, Args: []any{
		r.pg.Namespace, l.id, l.was, w.Turn, int32(w.Epoch), w.Seq, w.Losses, w.Holder, timeOrNull(w.Until), timeOrNull(moved),
	}}
}

// OpenCursor makes the caller the holder of a cursor.
func (r *Room) OpenCursor(ctx context.Context, o store.CursorOpen) (s store.CursorState, err error) {
	if err := o.Check(); err != nil {
		return s, err
	}
	if err := r.enter(ctx); err != nil {
		return s, err
	}
	defer r.pg.Leave()
	head, err := r.head(ctx) // of this server: it says whether the cursor goes on in another epoch
	if err != nil {
		return s, err
	}
	if err := head.check(o.Start); err != nil {
		return s, err
	}
	fresh := store.NewCursorRow(&o)
	err = r.pg.Retry(ctx, "open a cursor", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			add := &pg.Statement{Text: addCursor, Args: []any{r.pg.Namespace, o.Name, fresh.Filter, int32(fresh.Epoch), fresh.Seq}}
			if err := t.Run(ctx, add); err != nil {
				return err
			}
			l, err := r.lockCursor(ctx, t, o.Name)
			if err == nil && l == nil {
				err = pg.Fault{Err: errDeleted, Passing: true}.AsError() // between the two statements
			}
			if err != nil {
				return err
			}
			if s, err = l.row.Open(&o, l.epoch, l.now); err != nil {
				return err
			}
			s.Made = s.Turn == 1
			return t.Commit(ctx, r.put(l, time.Time{}))
		})
	})
	return s, err
}

var errDeleted = errors.New("the cursor was deleted just now")

func lost(name string) error { return fmt.Errorf("%w: %q", store.ErrCursorLost, name) }

func (r *Room) moveArgs(m *store.CursorMove) []any {
	return []any{r.pg.Namespace, m.Name, m.Turn, m.Holder, int32(m.To.Epoch()), m.To.Seq(), micros(m.Lease), m.Losses, m.Trimmed}
}

// MoveCursor commits where a cursor is.
func (r *Room) MoveCursor(ctx context.Context, m store.CursorMove) (s store.CursorState, err error) {
	if err := r.enter(ctx); err != nil {
		return s, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "move a cursor", pg.Always, func(ctx context.Context, again bool) error {
		move := &pg.Statement{Text: moveCursor, Args: r.moveArgs(&m)}
		if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, move); err != nil || move.Hits > 0 {
			return err
		}
		if !again {
			return r.notMoved(ctx, &m)
		}
		next := []any{r.pg.Namespace, m.Name, m.Turn + 1, m.Holder, int32(m.To.Epoch()), m.To.Seq()}
		found := &pg.Statement{Text: movedCursor, Args: next, Each: func(pg.Scan) error { return nil }}
		if err := r.pg.Send(ctx, r.pg.Work, nil, found); err != nil || found.Hits > 0 {
			return err
		}
		return r.notMoved(ctx, &m)
	})
	return store.CursorState{Turn: m.Turn + 1, At: m.To, Losses: m.Losses}, err
}

// MoveCursorIn commits where a cursor is with a user's transaction.
func (r *Room) MoveCursorIn(ctx context.Context, in pg.Session, m store.CursorMove) (s store.CursorState, err error) {
	if err := r.prepare(ctx); err != nil {
		return s, err
	}
	move := &pg.Statement{Text: moveCursor, Args: r.moveArgs(&m)}
	if err := in.Run(ctx, move); err != nil {
		return s, err
	}
	if move.Hits == 0 {
		return s, r.notMoved(ctx, &m)
	}
	return store.CursorState{Turn: m.Turn + 1, At: m.To, Losses: m.Losses}, nil
}

// notMoved says why a cursor could not be moved.
func (r *Room) notMoved(ctx context.Context, m *store.CursorMove) error {
	if err := r.checkPosition(ctx, m.To); errors.Is(err, store.ErrPosition) {
		return err
	}
	return lost(m.Name)
}

// held runs a statement about what a holder has.
func (r *Room) held(ctx context.Context, doing, text string, m *store.CursorMove, more ...any) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	return r.pg.Retry(ctx, doing, pg.Always, func(ctx context.Context, again bool) error {
		st := &pg.Statement{Text: text, Args: append([]any{r.pg.Namespace, m.Name, m.Turn, m.Holder}, more...)}
		if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, st); err != nil || st.Hits > 0 || again {
			return err
		}
		return lost(m.Name)
	})
}

// RenewCursor lengthens the lease of a holder.
func (r *Room) RenewCursor(ctx context.Context, m store.CursorMove) error {
	return r.held(ctx, "renew a cursor", renewCursor, &m, micros(m.Lease))
}

// FreeCursor ends the lease of a holder.
func (r *Room) FreeCursor(ctx context.Context, m store.CursorMove) error {
	return r.held(ctx, "free a cursor", freeCursor, &m)
}

// cursors runs a statement that reads some.
func (r *Room) cursors(ctx context.Context, text string, args ...any) (list []store.CursorInfo, err error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "read cursors", pg.Reading, func(ctx context.Context, _ bool) error {
		list = nil
		each := func(scan pg.Scan) error {
			var i store.CursorInfo
			var row store.CursorRow
			var epoch uint32
			var until, moved, trimmed pgtype.Timestamptz
			if err := scan(&i.Name, &row.Filter, &i.Made, &i.Turn, &row.Epoch, &row.Seq, &i.Losses, &until, &moved, &trimmed, &epoch); err != nil {
				return err
			}
			i.At, i.Made = row.At(epoch), i.Made.UTC()
			if until.Valid {
				i.Until = until.Time.UTC()
			}
			if moved.Valid {
				i.Moved = moved.Time.UTC()
			}
			if trimmed.Valid {
				i.Trimmed = trimmed.Time.UTC()
			}
			var err error
			if i.Filter, err = store.ParseFilter(row.Filter); err != nil {
				return fmt.Errorf("%w: the filter of cursor %q: %w", store.ErrCorrupt, i.Name, err)
			}
			list = append(list, i)
			return nil
		}
		return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: text, Args: append([]any{r.pg.Namespace}, args...), Each: each})
	})
	return list, err
}

// ListCursors lists cursors by name, after one.
func (r *Room) ListCursors(ctx context.Context, after string, n int) ([]store.CursorInfo, error) {
	return r.cursors(ctx, listCursors, after, n)
}

// CursorNamed is one of them.
func (r *Room) CursorNamed(ctx context.Context, name string) (store.CursorInfo, error) {
	list, err := r.cursors(ctx, oneCursor, name)
	if err != nil {
		return store.CursorInfo{}, err
	}
	if len(list) == 0 {
		return store.CursorInfo{}, job.NotFound("cursor", name)
	}
	return list[0], nil
}

// operate locks a cursor and runs what an operator wants of it, with its audit entry.
func (r *Room) operate(ctx context.Context, name, action, detail string, op store.Operator, f func(*cursorLock) *pg.Statement) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	return r.pg.Retry(ctx, action, pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			l, err := r.lockCursor(ctx, t, name)
			if err == nil && l == nil {
				err = job.NotFound("cursor", name)
			}
			if err != nil {
				return err
			}
			if err := t.Run(ctx, f(l)); err != nil {
				return err
			}
			return r.settings.Record(ctx, t, op, action, []string{name}, []string{detail})
		})
	})
}

// SeekCursor puts a cursor somewhere else.
func (r *Room) SeekCursor(ctx context.Context, name string, to stream.Position, op store.Operator) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	if err := r.checkPosition(ctx, to); err != nil {
		return err
	}
	return r.operate(ctx, name, "seek cursor", to.String(), op, func(l *cursorLock) *pg.Statement {
		l.row.Turn, l.row.Losses = l.row.Turn+1, 0
		l.row.Put(to)
		return r.put(l, l.now)
	})
}

// DeleteCursor forgets a cursor.
func (r *Room) DeleteCursor(ctx context.Context, name string, op store.Operator) error {
	return r.operate(ctx, name, "delete cursor", "", op, func(l *cursorLock) *pg.Statement {
		return &pg.Statement{Text: deleteCursor, Args: []any{r.pg.Namespace, l.id}}
	})
}

// checkPosition refuses positions that are not of this log.
func (r *Room) checkPosition(ctx context.Context, p stream.Position) error {
	if p.IsZero() {
		return nil
	}
	h, err := r.head(ctx)
	if err != nil {
		return err
	}
	return h.check(p)
}

// check refuses positions that are not of this log.
func (h head) check(p stream.Position) error {
	if !p.IsZero() && (p.Epoch() != h.epoch || p.Seq() > h.last) {
		return fmt.Errorf("%w: it is %s, and the log has come to %s", store.ErrPosition, p.Debug(), stream.At(h.epoch, h.last).Debug())
	}
	return nil
}
