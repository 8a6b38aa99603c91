package intents

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// readSnapshot comes before a look: whatever is older had ended, and the look sees it.
const readSnapshot = `SELECT pg_snapshot_xmin(pg_current_snapshot())::text`

// takeIntents locks intents that are to be applied: of the kinds ($2), so many
// ($3), of transactions from one on ($4), of so many bytes ($5). What another
// process holds is left to it.
//
//   - intent_fresh finds those that nobody has tried, in order; intent_due those
//     that were put off until now.
const takeIntents = `WITH fresh AS MATERIALIZED (
	SELECT i.*
	FROM unnest($2::smallint[]) AS k (kind)
	CROSS JOIN LATERAL (
		SELECT id, kind, failures, transaction, number, subject, payload
		FROM pawl.intent
		WHERE namespace = $1
			AND kind = k.kind
			AND due IS NULL
			AND transaction >= $4::text::xid8
		ORDER BY transaction, number
		LIMIT $3
		FOR UPDATE SKIP LOCKED
	) AS i
), late AS MATERIALIZED (
	SELECT i.*
	FROM unnest($2::smallint[]) AS k (kind)
	CROSS JOIN LATERAL (
		SELECT id, kind, failures, transaction, number, subject, payload
		FROM pawl.intent
		WHERE namespace = $1
			AND kind = k.kind
			AND due IS NOT NULL
			AND due <= {now}
		ORDER BY due
		LIMIT $3
		FOR UPDATE SKIP LOCKED
	) AS i
), held AS (
	SELECT *
	FROM fresh
	UNION ALL
	SELECT *
	FROM late
), weighed AS (
	SELECT *,
		sum(octet_length(subject) + coalesce(octet_length(payload), 0)) OVER (ORDER BY transaction, number) AS bytes,
		row_number() OVER (ORDER BY transaction, number) AS place,
		count(*) OVER () AS "all"
	FROM held
)
SELECT id, kind, failures, subject, payload, "all"
FROM weighed
WHERE place <= $3 AND (place = 1 OR bytes <= $5)
ORDER BY place`

// takeNamed is takeIntents for some of those that it took before.
//
//   - intent_pkey finds them.
const takeNamed = `SELECT i.id, i.kind, i.failures, i.subject, i.payload, 0::bigint
FROM (SELECT $1::int AS namespace, e.id FROM unnest($2::uuid[]) AS e (id) OFFSET 0) AS e
JOIN pawl.intent AS i ON i.namespace = e.namespace AND i.id = e.id
ORDER BY i.transaction, i.number
FOR UPDATE OF i SKIP LOCKED`

// firstIntents reads the first intents of subjects, one more of each than is held.
// It comes after the locks: who held one of them before has committed, or is still
// to be seen here.
//
//   - intent_subject finds them, in order.
const firstIntents = `SELECT f.id, f.kind, f.subject, CASE WHEN f.due > {now} THEN f.due END
FROM (
	SELECT $1::int AS namespace, s.*
	FROM unnest($2::smallint[], $3::text[], $4::int[]) AS s (kind, subject, held)
	OFFSET 0
) AS s
CROSS JOIN LATERAL (
	SELECT id, kind, subject, due
	FROM pawl.intent
	WHERE namespace = s.namespace
		AND kind = s.kind
		AND kind > 0
		AND subject = s.subject
	ORDER BY transaction, number
	LIMIT s.held + 1
) AS f`

// taken is what one transaction holds.
type taken struct {
	list     []store.Intent
	failures map[job.ID]int
	all      int64 // as many were to be applied
	xmin     string
}

// take locks intents: those named, or else up to limit of those that are to be
// applied.
func (r *Room) take(ctx context.Context, in pg.Session, w want) (t taken, err error) {
	t.failures = map[job.ID]int{}
	steps := []*pg.Statement{{Text: takeNamed, Args: []any{r.pg.Namespace, w.named}}}
	if w.named == nil {
		steps = []*pg.Statement{
			{Text: readSnapshot, Each: func(scan pg.Scan) error { return scan(&t.xmin) }},
			{Text: takeIntents, Args: []any{r.pg.Namespace, numbers(w.kinds), w.limit, w.from, store.IntentBytes}},
		}
	}
	steps[len(steps)-1].Each = func(scan pg.Scan) error {
		var i store.Intent
		var kind int16
		var failures int
		err := scan((*[16]byte)(&i.ID), &kind, &failures, &i.Subject, &i.Payload, &t.all)
		i.Kind = store.IntentKind(kind)
		t.list, t.failures[i.ID] = append(t.list, i), failures
		return err
	}
	return t, in.Run(ctx, steps...)
}

// first reads the first intents of each subject among those held.
func (r *Room) first(ctx context.Context, in pg.Session, held []store.Intent) (first []store.IntentPlace, err error) {
	type subject struct {
		kind store.IntentKind
		name string
	}
	place := map[subject]int{}
	var kinds []int16
	var subjects []string
	var counts []int32
	for i := range held {
		s := subject{held[i].Kind, held[i].Subject}
		n, ok := place[s]
		if !ok {
			n, place[s] = len(kinds), len(kinds)
			kinds, subjects, counts = append(kinds, int16(s.kind)), append(subjects, s.name), append(counts, 0)
		}
		counts[n]++
	}
	err = in.Run(ctx, &pg.Statement{
		Text: firstIntents, Args: []any{r.pg.Namespace, kinds, subjects, counts},
		Each: func(scan pg.Scan) error {
			var p store.IntentPlace
			var kind int16
			var until pgtype.Timestamptz
			err := scan((*[16]byte)(&p.ID), &kind, &p.Subject, &until)
			p.Kind = store.IntentKind(kind)
			if until.Valid {
				p.Until = until.Time
			}
			first = append(first, p)
			return err
		},
	})
	return first, err
}

// putBehind puts intents off for as long as the one they wait for.
//
//   - intent_pkey finds them.
const putBehind = `UPDATE pawl.intent AS i
SET due = e.due
FROM (
	SELECT $1::int AS namespace, e.*
	FROM unnest($2::uuid[], $3::timestamptz[]) AS e (id, due)
	OFFSET 0
) AS e
WHERE i.namespace = e.namespace AND i.id = e.id`

// putBehind puts off what waits for one that is put off. It reports whether others
// are left, which somebody else is at.
func (r *Room) putBehind(ctx context.Context, in pg.Session, behind map[job.ID]time.Time) (left bool, err error) {
	var ids [][16]byte
	var until []time.Time
	for id, at := range behind {
		if at.IsZero() {
			left = true
			continue
		}
		ids, until = append(ids, id), append(until, at)
	}
	if len(ids) == 0 {
		return left, nil
	}
	return left, in.Run(ctx, &pg.Statement{Text: putBehind, Args: []any{r.pg.Namespace, ids, until}})
}
