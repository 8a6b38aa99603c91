package sqlite

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// keepAudit is how long operator actions are remembered.
const keepAudit = 90 * 24 * time.Hour

// audit writes one entry in the transaction of the change it is about.
func (t *transition) audit(op store.Operator, action, target string) error {
	if op.Name == "" {
		return nil
	}
	return t.On("INSERT INTO pawl_audit (namespace, time, by, action, target, note, expires) VALUES (?, ?, ?, ?, ?, ?, ?)").
		Int(t.Now).Text(op.Name).Text(action).Text(target).Text(op.Note).Int(lite.Later(t.Now, keepAudit)).Exec()
}

// Audit lists operator actions, the newest first.
func (s *Store) Audit(ctx context.Context, limit int) (entries []store.AuditEntry, err error) {
	err = s.read(ctx, func(c *lite.Snapshot) error {
		entries = nil
		q := c.Query("SELECT time, by, action, target, note FROM pawl_audit WHERE namespace = ? ORDER BY id DESC LIMIT ?").Int(c.Namespace).Int(int64(limit))
		for q.Step() {
			entries = append(entries, store.AuditEntry{Time: lite.TimeOf(q.ColInt(0)), By: q.ColText(1), Action: q.ColText(2), Target: q.ColText(3), Note: q.ColText(4)})
		}
		return q.Done()
	})
	return entries, err
}
