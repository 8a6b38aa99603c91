package settings

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

const (
	addEntries = `INSERT INTO pawl.audit (namespace, time, expires, by, action, target, note)
SELECT $1, {now}, {now} + interval '90 days', $2, $3, t.name, $4
FROM unnest($5::text[]) WITH ORDINALITY AS t (name, n)
ORDER BY t.n`
	// audit_pkey lists them.
	newestEntries = `SELECT time, by, action, target, note
FROM pawl.audit
WHERE namespace = $1
ORDER BY id DESC
LIMIT $2`
)

// Record writes entries in the transaction of the change they are about. They
// are remembered for 90 days.
func (r *Room) Record(ctx context.Context, session pg.Session, op store.Operator, action string, targets []string) error {
	if op.Name == "" || len(targets) == 0 {
		return nil
	}
	args := []any{r.pg.Namespace, pg.Legible(op.Name), action, pg.Legible(op.Note), targets}
	return session.Run(ctx, &pg.Statement{Text: addEntries, Args: args})
}

// Audit lists operator actions, the newest first.
func (r *Room) Audit(ctx context.Context, limit int) ([]store.AuditEntry, error) {
	var entries []store.AuditEntry
	err := r.pg.Read(ctx, func() []*pg.Statement {
		entries = nil
		return []*pg.Statement{{
			Text: newestEntries, Args: []any{r.pg.Namespace, limit},
			Each: func(scan pg.Scan) error {
				var e store.AuditEntry
				err := scan(&e.Time, &e.By, &e.Action, &e.Target, &e.Note)
				e.Time = e.Time.UTC()
				entries = append(entries, e)
				return err
			},
		}}
	})
	return entries, err
}
