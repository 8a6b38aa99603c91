package settings

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// What reads and writes overrides (override_pkey).
const (
	valueOf = `SELECT value
FROM pawl.override
WHERE namespace = $1 AND kind = $2 AND name = $3`

	putOverride = `INSERT INTO pawl.override (namespace, kind, name, value, by, note, since)
VALUES ($1, $2, $3, $4, $5, $6, {now})
ON CONFLICT (namespace, kind, name) DO UPDATE
SET value = excluded.value, by = excluded.by, note = excluded.note, since = excluded.since`

	dropOverride = `DELETE FROM pawl.override
WHERE namespace = $1 AND kind = $2 AND name = $3`
)

// Override puts an operator's fields over what is set for one name.
func (r *Room) Override(ctx context.Context, s store.Setting, value json.RawMessage, op store.Operator) error {
	if err := s.Check("setting"); err != nil {
		return err
	}
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	err := r.pg.Retry(ctx, "override", pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			var before json.RawMessage
			read := &pg.Statement{Text: valueOf, Args: []any{r.pg.Namespace, s.Kind, s.Name}, Each: func(scan pg.Scan) error { return scan((*[]byte)(&before)) }}
			if err := t.Run(ctx, r.lock(), read); err != nil {
				return err
			}
			after, err := s.Patch(before, value)
			if err != nil {
				return err
			}
			if !bytes.Equal(before, after) {
				change := &pg.Statement{Text: dropOverride, Args: []any{r.pg.Namespace, s.Kind, s.Name}}
				if after != nil {
					change = &pg.Statement{Text: putOverride, Args: []any{
						r.pg.Namespace, s.Kind, s.Name, []byte(after), pg.Legible(op.Name), pg.Legible(op.Note),
					}}
				}
				if err := t.Run(ctx, change, r.raise()); err != nil {
					return err
				}
			}
			action, target, detail := store.OverrideAction(s, value, before, after)
			return r.Record(ctx, t, op, action, []string{target}, []string{pg.Legible(detail)})
		})
	})
	if err != nil {
		return err
	}
	r.hints.Notifier.Settings()
	return nil
}
