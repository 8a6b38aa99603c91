package settings

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// What begins and ends a pause (pause_pkey). One that is on stays as it began.
const (
	addPause = `INSERT INTO pawl.pause (namespace, scope, name, since, by, note)
VALUES ($1, $2, $3, {now}, $4, $5)
ON CONFLICT DO NOTHING`

	endPause = `DELETE FROM pawl.pause
WHERE namespace = $1 AND scope = $2 AND name = $3`
)

// QueuePaused is the condition under which a queue gives nothing out, whatever its
// name is in the statement: it is paused, everything is, or it cools down.
//
//   - pause_pkey and cool_down_pkey: one seek for each, once in a statement.
func QueuePaused(queue string) string {
	return `(EXISTS (SELECT FROM pawl.pause WHERE namespace = $1 AND scope = 1 AND name = ` + queue + `)
			OR EXISTS (SELECT FROM pawl.pause WHERE namespace = $1 AND scope = 3 AND name = '')
			OR ` + CoolsUntil(queue) + ` IS NOT NULL)`
}

// SetPaused stops or allows claims: from a queue, of a kind, or all of them.
func (r *Room) SetPaused(ctx context.Context, p store.Pause, paused bool, op store.Operator) error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	action, target := store.PauseAction(p, paused)
	err := r.pg.Retry(ctx, action, pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			change := &pg.Statement{Text: endPause, Args: []any{r.pg.Namespace, p.Scope, p.Name}}
			if paused {
				change = &pg.Statement{Text: addPause, Args: []any{r.pg.Namespace, p.Scope, p.Name, pg.Legible(op.Name), pg.Legible(op.Note)}}
			}
			if err := t.Run(ctx, change); err != nil {
				return err
			}
			if change.Hits > 0 {
				if err := t.Run(ctx, r.raise()); err != nil {
					return err
				}
			}
			detail := ""
			if change.Hits == 0 {
				detail = "nothing changed"
			}
			return r.Record(ctx, t, op, action, []string{target}, []string{detail})
		})
	})
	if err != nil {
		return err
	}
	switch p.Scope {
	case store.PauseQueue:
		r.hints.LookAt(p.Name)
	case store.PauseAll:
		r.hints.LookAtAll()
	}
	r.hints.Notifier.Settings()
	return nil
}

// allPauses lists what is paused (pause_pkey).
const allPauses = `SELECT scope, name, since, by, note
FROM pawl.pause
WHERE namespace = $1
ORDER BY scope, name`

// PausesStep lists what is paused.
func (r *Room) PausesStep(list *[]store.Pause) *pg.Statement {
	return &pg.Statement{Text: allPauses, Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error {
		var p store.Pause
		err := scan(&p.Scope, &p.Name, &p.Since, &p.By, &p.Note)
		p.Since = p.Since.UTC()
		*list = append(*list, p)
		return err
	}}
}
