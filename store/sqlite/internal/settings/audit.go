package settings

import (
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// keepAudit is how long operator actions are remembered.
const keepAudit = 90 * 24 * time.Hour

const insertEntry = `INSERT INTO pawl_audit (namespace, time, by, action, target, note, detail, expires)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

// Audit writes one entry in the transaction of the change it is about.
func Audit(t *lite.Session, op store.Operator, action, target, detail string) error {
	if op.Name == "" {
		return nil
	}
	return t.On(insertEntry).
		Int(t.Now).Text(op.Name).Text(action).Text(target).Text(op.Note).Text(detail).Int(lite.Later(t.Now, keepAudit)).Exec()
}

// What lists entries, all of them or those about one target.
//   - pawl_audit_time and pawl_audit_target, backwards.
const (
	entriesByTime = `SELECT id, time, by, action, target, note, detail
	FROM pawl_audit INDEXED BY pawl_audit_time
	WHERE namespace = ? AND (time, id) < (?, ?) AND time >= ?
	ORDER BY time DESC, id DESC
	LIMIT ?`

	entriesByTarget = `SELECT id, time, by, action, target, note, detail
	FROM pawl_audit INDEXED BY pawl_audit_target
	WHERE namespace = ? AND target = ? AND (time, id) < (?, ?) AND time >= ?
	ORDER BY time DESC, id DESC
	LIMIT ?`
)

// EntryTexts are the statements that list entries, for tests that look at their plans.
func EntryTexts() []string { return []string{entriesByTime, entriesByTarget} }

// Entries pages through operator actions, the newest first.
func Entries(c *lite.Snapshot, f store.AuditFilter, p store.AuditPage) (list store.AuditList, err error) {
	var q *lite.Query
	if f.Target == "" {
		q = c.On(entriesByTime)
	} else {
		q = c.On(entriesByTarget).Text(f.Target)
	}
	before := p.Before(&f)
	q.Int(lite.Micros(before.Time)).Int(before.ID).Int(lite.Micros(f.After)).Int(store.AuditVisits)
	for n := 1; q.Step(); n++ {
		e := store.AuditEntry{
			ID: q.ColInt(0), Time: lite.TimeOf(q.ColInt(1)), By: q.ColText(2), Action: q.ColText(3), Target: q.ColText(4), Note: q.ColText(5),
			Detail: q.ColText(6),
		}
		if list.Add(&f, &p, &e, n) {
			break
		}
	}
	return list, q.Done()
}
