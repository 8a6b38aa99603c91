package settings

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// What sets, ends and reads pauses, by primary key.
const (
	addPause = `INSERT INTO pawl_pause (namespace, scope, name, since, by, note)
	VALUES (?, ?, ?, ?, ?, ?)
	ON CONFLICT DO NOTHING`

	endPause = `DELETE FROM pawl_pause
	WHERE namespace = ? AND scope = ? AND name = ?`

	// One seek for everything, one for the queue, one for its cool-down.
	isClosed = `SELECT 0
	FROM pawl_pause
	WHERE namespace = ?1 AND (scope, name) IN (VALUES (3, ''), (1, ?2))
	UNION ALL
	SELECT until
	FROM pawl_cool_down
	WHERE namespace = ?1 AND queue = ?2 AND until > ?3 AND since <= ?3 + 10000000`

	allPauses = `SELECT scope, name, since, by, note
	FROM pawl_pause
	WHERE namespace = ?
	ORDER BY scope, name`
)

// SetPaused stops or allows claims.
func SetPaused(t *lite.Session, p store.Pause, paused bool, op store.Operator) error {
	change := t.On(endPause).Int(int64(p.Scope)).Text(p.Name)
	if paused {
		change = t.On(addPause).Int(int64(p.Scope)).Text(p.Name).Int(t.Now).Text(op.Name).Text(op.Note)
	}
	n, err := change.Changes()
	if err != nil {
		return err
	}
	if n > 0 {
		if _, err := raise(t); err != nil {
			return err
		}
	}
	action, target := store.PauseAction(p, paused)
	detail := ""
	if n == 0 {
		detail = "nothing changed"
	}
	return Audit(t, op, action, target, detail)
}

// Closed tells whether a queue gives nothing out: it is paused, everything is, or it
// cools down, and then until when.
type Closed struct {
	Is    bool
	Until time.Time // of the cool-down; zero without
}

// IsClosed tells whether a queue gives nothing out.
func IsClosed(c *lite.Snapshot, queue string, now int64) (closed Closed, err error) {
	q := c.On(isClosed).Text(queue).Int(now)
	for q.Step() {
		closed.Is = true
		if until := q.ColInt(0); until != 0 {
			closed.Until = lite.TimeOf(until)
		}
	}
	return closed, q.Done()
}

// Pauses lists what is paused.
func Pauses(c *lite.Snapshot) (list []store.Pause, err error) {
	q := c.On(allPauses)
	for q.Step() {
		list = append(list, store.Pause{
			Scope: job.PauseScope(q.ColInt(0)), Name: q.ColText(1), Since: lite.TimeOf(q.ColInt(2)), By: q.ColText(3), Note: q.ColText(4),
		})
	}
	return list, q.Done()
}
