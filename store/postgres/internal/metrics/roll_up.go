package metrics

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// oneRolls is the lock of who rolls up: one in a namespace at a time, because two
// would both add to what they find merged. It ends with the transaction.
const oneRolls = `SELECT pg_try_advisory_xact_lock(hashtext($2::text || '.metric'), $1)`

// dueMetrics lists what can be rolled up, at most $2 rows. Nobody else removes them but
// a purge or an erasure; what one of those is at is left to it.
//
//   - metric_roll gives them in order.
const dueMetrics = `SELECT class, width, start, name, kind, source, flush, data
FROM pawl.metric
WHERE namespace = $1 AND roll IS NOT NULL AND roll <= {now}
ORDER BY roll, class, width, name, kind, start
LIMIT $2
FOR UPDATE SKIP LOCKED`

// keys joins what is given with the rows of the table, by metric_pkey.
const keys = `(
	SELECT $1::int AS namespace, k.*
	FROM unnest($2::smallint[], $3::smallint[], $4::timestamptz[], $5::text[], $6::text[], $7::uuid[], $8::bigint[])
		AS k (class, width, start, name, kind, source, flush)
	OFFSET 0
) AS k`

const sameKey = `m.namespace = k.namespace AND m.class = k.class AND m.width = k.width AND m.start = k.start
	AND m.name = k.name AND m.kind = k.kind AND m.source = k.source AND m.flush = k.flush`

const (
	mergedMetrics = `SELECT m.class, m.width, m.start, m.name, m.kind, m.source, m.flush, m.data
FROM ` + keys + `
JOIN pawl.metric AS m ON ` + sameKey + `
FOR UPDATE OF m`

	dropMetrics = `DELETE FROM pawl.metric AS m
USING ` + keys + `
WHERE ` + sameKey

	putMetrics = `INSERT INTO pawl.metric (
	namespace, class, width, start, name, kind, source, flush, roll, expires, data
)
SELECT $1, r.*
FROM unnest(
	$2::smallint[], $3::smallint[], $4::timestamptz[], $5::text[], $6::text[], $7::uuid[], $8::bigint[],
	$9::timestamptz[], $10::timestamptz[], $11::bytea[]
) AS r
ON CONFLICT (namespace, class, width, start, name, kind, source, flush) DO UPDATE
SET roll = excluded.roll, expires = excluded.expires, data = excluded.data`
)

// key is what names rows in the statements above.
func (c *rows) key(namespace int32) []any {
	return []any{namespace, c.classes, c.widths, c.starts, c.names, c.kinds, c.sources, c.flushes}
}

// RollUp merges up to limit rows whose time has come, in one transaction: those that
// go and those that they become are there never together, and never neither. So it may
// be repeated when its answer was lost.
func (r *Room) RollUp(ctx context.Context, limit int) (reply store.RollUpReply, err error) {
	if err := r.pg.Enter(ctx); err != nil {
		return reply, err
	}
	defer r.pg.Leave()
	limit = max(limit, store.LeastRollUp)
	err = r.pg.Retry(ctx, "roll up metrics", pg.Always, func(ctx context.Context, _ bool) error {
		reply = store.RollUpReply{}
		return r.pg.Transact(ctx, r.pg.Upkeep, pg.UpkeepLimits, func(t *pg.Transaction) (err error) {
			reply, err = r.rollUp(ctx, t, limit)
			return err
		})
	})
	if err != nil {
		return store.RollUpReply{}, err
	}
	return reply, nil
}

func (r *Room) rollUp(ctx context.Context, in pg.Session, limit int) (reply store.RollUpReply, err error) {
	var mine bool
	lock := &pg.Statement{Text: oneRolls, Args: []any{r.pg.Namespace, r.pg.Texts.Schema}, Each: func(scan pg.Scan) error { return scan(&mine) }}
	if err := in.Run(ctx, lock); err != nil || !mine {
		return reply, err
	}
	// In a later statement: its snapshot has what the one before us has committed.
	taken, err := r.list(ctx, in, dueMetrics, []any{r.pg.Namespace, limit})
	if err != nil || len(taken) == 0 {
		return reply, err
	}
	all := len(taken)
	taken = taken[:store.RollUpTogether(taken, limit)]
	var into, gone, become rows
	for _, p := range store.RollUpInto(taken) {
		into.add(p.Row(nil))
	}
	there, err := r.list(ctx, in, mergedMetrics, into.key(r.pg.Namespace))
	if err != nil {
		return reply, err
	}
	for i := range taken {
		gone.add(&taken[i])
	}
	for _, row := range store.RollUpMetrics(taken, there) {
		become.add(&row)
	}
	put := append(become.key(r.pg.Namespace), become.rolls, become.expires, become.data)
	err = in.Run(ctx,
		&pg.Statement{Text: dropMetrics, Args: gone.key(r.pg.Namespace)},
		&pg.Statement{Text: putMetrics, Args: put})
	return store.RollUpReply{Merged: len(taken), More: all >= limit || len(taken) < all}, err
}

func (r *Room) list(ctx context.Context, in pg.Session, text string, args []any) (list []store.StoredMetric, err error) {
	err = in.Run(ctx, &pg.Statement{Text: text, Args: args, Each: func(scan pg.Scan) error {
		row, err := scanned(scan)
		list = append(list, row)
		return err
	}})
	return list, err
}
