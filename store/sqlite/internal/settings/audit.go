package settings

import (
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// keepAudit is how long operator actions are remembered.
const keepAudit = 90 * 24 * time.Hour

const insertEntry = `INSERT INTO pawl_audit (namespace, time, by, action, target, note, expires)
	VALUES (?, ?, ?, ?, ?, ?, ?)`

// Audit writes one entry in the transaction of the change it is about.
func Audit(t *lite.Session, op store.Operator, action, target string) error {
	if op.Name == "" {
		return nil
	}
	return t.On(insertEntry).
		Int(t.Now).Text(op.Name).Text(action).Text(target).Text(op.Note).Int(lite.Later(t.Now, keepAudit)).Exec()
}

// newestEntries lists operator actions.
//   - pawl_audit_time, backwards.
const newestEntries = `SELECT time, by, action, target, note
	FROM pawl_audit
	WHERE namespace = ?
	ORDER BY id DESC
	LIMIT ?`

// Entries lists operator actions, the newest first.
func Entries(c *lite.Snapshot, limit int) ([]store.AuditEntry, error) {
	var entries []store.AuditEntry
	q := c.On(newestEntries).Int(int64(limit))
	for q.Step() {
		entries = append(entries, store.AuditEntry{
			Time: lite.TimeOf(q.ColInt(0)), By: q.ColText(1), Action: q.ColText(2), Target: q.ColText(3), Note: q.ColText(4),
		})
	}
	return entries, q.Done()
}

// purgeEntries removes entries whose time is over.
//   - pawl_audit_expires finds the oldest, the primary key removes them.
const purgeEntries = `DELETE FROM pawl_audit
	WHERE id IN (
		SELECT id
		FROM pawl_audit
		WHERE namespace = ?1 AND expires <= ?2
		ORDER BY expires
		LIMIT ?3)`

// Expired finds an entry whose time is over at ?2.
//   - A seek on pawl_audit_expires.
const Expired = `SELECT 1
		FROM pawl_audit
		WHERE namespace = ?1 AND expires <= ?2`

// Purge removes up to limit entries whose time is over.
func Purge(t *lite.Session, limit int) (int64, error) {
	return t.On(purgeEntries).Int(t.Now).Int(int64(limit)).Changes()
}
