package log

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/stream"
)

// What reads and writes cursors, by primary key.
const (
	cursorColumns = `filter, turn, epoch, seq, losses, holder, until`

	oneCursor = `SELECT ` + cursorColumns + `, made, moved, name, trimmed
	FROM pawl_cursor
	WHERE namespace = ? AND name = ?`

	listCursors = `SELECT ` + cursorColumns + `, made, moved, name, trimmed
	FROM pawl_cursor
	WHERE namespace = ? AND name > ?
	ORDER BY name
	LIMIT ?`

	addCursor = `INSERT INTO pawl_cursor (namespace, name, ` + cursorColumns + `, made)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	openCursor = `UPDATE pawl_cursor
	SET turn = ?3, epoch = ?4, losses = ?5, holder = ?6, until = ?7
	WHERE namespace = ?1 AND name = ?2`

	moveCursor = `UPDATE pawl_cursor
	SET turn = turn + 1, epoch = ?3, seq = ?4, until = ?5, moved = ?6, losses = ?9,
		trimmed = CASE WHEN ?10 THEN ?6 ELSE trimmed END
	WHERE namespace = ?1 AND name = ?2 AND turn = ?7 AND holder = ?8`

	renewCursor = `UPDATE pawl_cursor
	SET until = ?3
	WHERE namespace = ?1 AND name = ?2 AND turn = ?4 AND holder = ?5`

	freeCursor = `UPDATE pawl_cursor
	SET until = NULL, holder = zeroblob(16)
	WHERE namespace = ?1 AND name = ?2 AND turn = ?3 AND holder = ?4`

	seekCursor = `UPDATE pawl_cursor
	SET turn = turn + 1, epoch = ?3, seq = ?4, losses = 0, moved = ?5
	WHERE namespace = ?1 AND name = ?2`

	deleteCursor = `DELETE FROM pawl_cursor
	WHERE namespace = ? AND name = ?`
)

// scanCursor reads a row of cursors.
func scanCursor(q *lite.Query) (r store.CursorRow, i store.CursorInfo, err error) {
	r = store.CursorRow{
		Filter: q.ColText(0), Turn: q.ColInt(1), Epoch: uint32(q.ColInt(2)), Seq: q.ColInt(3), Losses: int(q.ColInt(4)),
		Holder: uuid.UUID(q.ColID(5)), Until: q.ColTime(6),
	}
	i = store.CursorInfo{
		Name: q.ColText(9), At: r.At(epoch), Turn: r.Turn, Losses: r.Losses, Made: q.ColTime(7), Moved: q.ColTime(8), Until: r.Until, Trimmed: q.ColTime(10),
	}
	if i.Filter, err = store.ParseFilter(r.Filter); err != nil {
		err = fmt.Errorf("%w: the filter of cursor %q: %w", store.ErrCorrupt, i.Name, err)
	}
	return r, i, err
}

func findCursor(c *lite.Snapshot, name string) (r store.CursorRow, i store.CursorInfo, found bool, err error) {
	q := c.On(oneCursor).Text(name)
	if found = q.Step(); found {
		r, i, err = scanCursor(q)
	}
	if done := q.Done(); err == nil {
		err = done
	}
	return r, i, found, err
}

// OpenCursor makes somebody the holder of a cursor.
func OpenCursor(t *lite.Session, o *store.CursorOpen) (s store.CursorState, err error) {
	row, _, found, err := findCursor(&t.Snapshot, o.Name)
	if err != nil {
		return s, err
	}
	if !found {
		if err := checkPosition(&t.Snapshot, o.Start); err != nil {
			return s, err
		}
		row = store.NewCursorRow(o)
	}
	if s, err = row.Open(o, epoch, lite.TimeOf(t.Now)); err != nil {
		return s, err
	}
	if s.Made = !found; s.Made {
		return s, t.On(addCursor).Text(o.Name).Text(row.Filter).Int(row.Turn).Int(int64(row.Epoch)).Int(row.Seq).
			Int(int64(row.Losses)).Blob(row.Holder[:]).TimeOrNull(row.Until).Int(t.Now).Exec()
	}
	return s, t.On(openCursor).Text(o.Name).Int(row.Turn).Int(int64(row.Epoch)).Int(int64(row.Losses)).
		Blob(row.Holder[:]).TimeOrNull(row.Until).Exec()
}

// MoveCursor commits where a cursor is. There is one writer, and no answer is lost.
func MoveCursor(t *lite.Session, m *store.CursorMove) (s store.CursorState, err error) {
	if err := checkPosition(&t.Snapshot, m.To); err != nil {
		return s, err
	}
	n, err := t.On(moveCursor).Text(m.Name).Int(int64(m.To.Epoch())).Int(m.To.Seq()).TimeOrNull(lease(t, m.Lease)).Int(t.Now).
		Int(m.Turn).Blob(m.Holder[:]).Int(int64(m.Losses)).Bool(m.Trimmed).Changes()
	if err == nil && n == 0 {
		err = lost(m.Name)
	}
	return store.CursorState{Turn: m.Turn + 1, At: m.To, Losses: m.Losses}, err
}

func lost(name string) error { return fmt.Errorf("%w: %q", store.ErrCursorLost, name) }

// lease is the end of one that begins now.
func lease(t *lite.Session, d time.Duration) (until time.Time) {
	if d > 0 {
		until = lite.TimeOf(lite.Later(t.Now, d))
	}
	return until
}

// RenewCursor lengthens the lease of a holder.
func RenewCursor(t *lite.Session, m *store.CursorMove) error {
	n, err := t.On(renewCursor).Text(m.Name).TimeOrNull(lease(t, m.Lease)).Int(m.Turn).Blob(m.Holder[:]).Changes()
	if err == nil && n == 0 {
		err = lost(m.Name)
	}
	return err
}

// FreeCursor ends the lease of a holder.
func FreeCursor(t *lite.Session, m *store.CursorMove) error {
	n, err := t.On(freeCursor).Text(m.Name).Int(m.Turn).Blob(m.Holder[:]).Changes()
	if err == nil && n == 0 {
		err = lost(m.Name)
	}
	return err
}

// ListCursors lists cursors by name, after one.
func ListCursors(c *lite.Snapshot, after string, n int) (list []store.CursorInfo, err error) {
	q := c.On(listCursors).Text(after).Int(int64(n))
	for q.Step() {
		_, i, err := scanCursor(q)
		if err != nil {
			_ = q.Done()
			return nil, err
		}
		list = append(list, i)
	}
	return list, q.Done()
}

// CursorNamed is one of them.
func CursorNamed(c *lite.Snapshot, name string) (store.CursorInfo, error) {
	_, i, found, err := findCursor(c, name)
	if err == nil && !found {
		err = job.NotFound("cursor", name)
	}
	return i, err
}

// SeekCursor puts a cursor somewhere else.
func SeekCursor(t *lite.Session, name string, to stream.Position, op store.Operator) error {
	if err := checkPosition(&t.Snapshot, to); err != nil {
		return err
	}
	n, err := t.On(seekCursor).Text(name).Int(int64(to.Epoch())).Int(to.Seq()).Int(t.Now).Changes()
	if err == nil && n == 0 {
		err = job.NotFound("cursor", name)
	}
	if err != nil {
		return err
	}
	return settings.Audit(t, op, "seek cursor", name, to.String())
}

// DeleteCursor forgets a cursor.
func DeleteCursor(t *lite.Session, name string, op store.Operator) error {
	n, err := t.On(deleteCursor).Text(name).Changes()
	if err == nil && n == 0 {
		err = job.NotFound("cursor", name)
	}
	if err != nil {
		return err
	}
	return settings.Audit(t, op, "delete cursor", name, "")
}

// checkPosition refuses positions that are not of this log.
func checkPosition(c *lite.Snapshot, p stream.Position) error {
	if p.IsZero() {
		return nil
	}
	head, err := Head(c)
	if err == nil && (p.Epoch() != epoch || p.Seq() > head.Seq()) {
		err = fmt.Errorf("%w: it is %s, and the log has come to %s", store.ErrPosition, p.Debug(), head.Debug())
	}
	return err
}
