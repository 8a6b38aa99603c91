package intents

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// The rules of P6 about intents. Their names are those of every store.
const (
	outOfBounds   = "intent out of bounds"
	behindNothing = "intent put off for nothing"
)

// CheckRules lists the names of the rules.
func CheckRules() []string { return []string{outOfBounds, behindNothing} }

// checkIntents finds what breaks them among so many ($3) intents after one ($2).
//
//   - intent_pkey gives the stretch, intent_subject those before each in its subject.
const checkIntents = `WITH part AS MATERIALIZED (
	SELECT *
	FROM pawl.intent
	WHERE namespace = $1 AND id > $2
	ORDER BY id
	LIMIT $3
)
SELECT p.id, CASE
	WHEN p.kind < 1 OR p.failures < 0 OR octet_length(p.subject) > $4 OR octet_length(p.payload) > $5 THEN
		'` + outOfBounds + `'
	WHEN p.due > {now} AND p.failures = 0 AND NOT EXISTS (
		SELECT
		FROM pawl.intent AS b
		WHERE b.namespace = $1
			AND b.kind = p.kind
			AND b.kind > 0
			AND b.subject = p.subject
			AND (b.transaction, b.number) < (p.transaction, p.number)
			AND b.failures > 0
	) THEN
		'` + behindNothing + `'
	ELSE
		''
END, 'kind ' || p.kind || ', ' || p.failures || ' failures'
FROM part AS p
ORDER BY p.id`

// Check adds what is broken to a report.
func (r *Room) Check(ctx context.Context, step int, report *store.CheckReport) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	last := [16]byte{}
	for rows := step; rows >= step; {
		var found []store.Fault
		reached := last
		err := r.pg.Retry(ctx, "check", pg.Reading, func(ctx context.Context, _ bool) error {
			rows, found = 0, nil
			return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &pg.Statement{
				Text: checkIntents, Args: []any{r.pg.Namespace, last, step, store.MaxIntentSubject, store.MaxIntentPayload},
				Each: func(scan pg.Scan) error {
					var f store.Fault
					err := scan(&reached, &f.Rule, &f.Detail)
					f.ID = job.ID(reached)
					if f.Rule != "" {
						found = append(found, f)
					}
					rows++
					return err
				},
			})
		})
		if err != nil {
			return err
		}
		last = reached
		report.Faults = append(report.Faults, found...)
	}
	return nil
}
