package intents

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// listIntents reads intents that have not been applied, the oldest id first: ids
// ascend with time.
//
//   - intent_pkey gives them in order.
const listIntents = `SELECT id, kind, failures, created, due, subject, payload, coalesce(error, '')
FROM pawl.intent
WHERE namespace = $1 AND id > '00000000-0000-0000-0000-000000000000'
ORDER BY id
LIMIT $2`

// Waiting lists intents that have not been applied, of every kind.
func (r *Room) Waiting(ctx context.Context, limit int) ([]store.IntentInfo, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	known := r.Known()
	var list []store.IntentInfo
	err := r.pg.Retry(ctx, "list intents", pg.Reading, func(ctx context.Context, _ bool) error {
		list = nil
		return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &pg.Statement{
			Text: listIntents, Args: []any{r.pg.Namespace, limit},
			Each: func(scan pg.Scan) error {
				var i store.IntentInfo
				var kind int16
				var until pgtype.Timestamptz
				err := scan((*[16]byte)(&i.ID), &kind, &i.Failures, &i.Created, &until, &i.Subject, &i.Payload, &i.Error)
				i.Kind = store.IntentKind(kind)
				if until.Valid {
					i.Until = until.Time
				}
				i.Known = slices.Contains(known, i.Kind)
				list = append(list, i)
				return err
			},
		})
	})
	return list, err
}

// lookIntents says whether a sweep would find something.
//
//   - intent_fresh and intent_due: a seek for the first of each kind.
const lookIntents = `SELECT (
	SELECT 1
	FROM unnest($2::smallint[]) AS k (kind)
	CROSS JOIN LATERAL (
		SELECT 1
		FROM pawl.intent
		WHERE namespace = $1 AND kind = k.kind AND due IS NULL
		ORDER BY transaction
		LIMIT 1
	) AS i
	LIMIT 1
) IS NOT NULL OR (
	SELECT 1
	FROM unnest($2::smallint[]) AS k (kind)
	CROSS JOIN LATERAL (
		SELECT 1
		FROM pawl.intent
		WHERE namespace = $1 AND kind = k.kind AND due IS NOT NULL AND due <= {now}
		ORDER BY due
		LIMIT 1
	) AS i
	LIMIT 1
) IS NOT NULL`

// Look is the part of the look for what is due that is about intents; nil while
// this build applies none.
func (r *Room) Look(due *bool) []*pg.Statement {
	known := r.Known()
	if len(known) == 0 {
		return nil
	}
	return []*pg.Statement{{
		Text: lookIntents, Args: []any{r.pg.Namespace, numbers(known)}, Each: func(scan pg.Scan) error { return scan(due) },
	}}
}
