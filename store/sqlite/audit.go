package sqlite

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
)

// keepAudit is how long operator actions are remembered.
const keepAudit = 90 * 24 * time.Hour

// audit writes one entry in the transaction of the change it is about.
func (t *transition) audit(op store.Operator, action, target string) error {
	if op.Name == "" {
		return nil
	}
	return t.on("INSERT INTO pawl_audit (namespace, time, by, action, target, note, expires) VALUES (?, ?, ?, ?, ?, ?, ?)").
		int(t.now).text(op.Name).text(action).text(target).text(op.Note).int(later(t.now, keepAudit)).exec()
}

// Audit lists operator actions, the newest first.
func (s *Store) Audit(ctx context.Context, limit int) (entries []store.AuditEntry, err error) {
	err = s.read(ctx, func(c *snapshot) error {
		entries = nil
		q := c.query("SELECT time, by, action, target, note FROM pawl_audit WHERE namespace = ? ORDER BY id DESC LIMIT ?").int(c.namespace).int(int64(limit))
		for q.step() {
			entries = append(entries, store.AuditEntry{Time: timeOf(q.colInt(0)), By: q.colText(1), Action: q.colText(2), Target: q.colText(3), Note: q.colText(4)})
		}
		return q.done()
	})
	return entries, err
}
