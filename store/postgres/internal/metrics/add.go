package metrics

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// addMetrics keeps a flush ($2, $3), unless it or a later one of its source has been
// kept: then mark has no row. A row ahead of the clock counts from its current minute.
//
//   - metric_flush_pkey finds the source.
const addMetrics = `WITH mark AS (
	INSERT INTO pawl.metric_flush AS f (namespace, source, number, expires)
	VALUES ($1, $2, $3, {now} + $4 * interval '1 microsecond')
	ON CONFLICT (namespace, source) DO UPDATE
	SET number = excluded.number, expires = excluded.expires
	WHERE f.number < excluded.number
	RETURNING source, number
)
INSERT INTO pawl.metric (namespace, class, width, start, name, kind, source, flush, roll, expires, data)
SELECT $1, r.class, $5, r.start - r.ahead, r.name, r.kind, mark.source,
	CASE WHEN r.ahead > interval '0' THEN r.alone ELSE mark.number END, r.roll - r.ahead, r.expires - r.ahead, r.data
FROM mark
CROSS JOIN (
	SELECT *, greatest(start - date_trunc('minute', {now}, 'UTC'), interval '0') AS ahead
	FROM unnest(
		$6::smallint[], $7::timestamptz[], $8::text[], $9::text[],
		$10::timestamptz[], $11::timestamptz[], $12::bytea[], $13::bigint[]
	)
		AS r (class, start, name, kind, roll, expires, data, alone)
) AS r`

// mostAlong is how many rows may go along with a beat, which must not wait for more.
const mostAlong = 64

// Add keeps what a process has measured, once.
func (r *Room) Add(ctx context.Context, f *store.MetricFlush) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	var c rows
	for i, row := range f.Rows {
		c.add(&store.StoredMetric{MetricRow: row, Width: store.MetricPart, Flush: store.AheadFlush(f.Number, i)})
	}
	add := func() *pg.Statement {
		return &pg.Statement{Text: addMetrics, Args: []any{
			r.pg.Namespace, [16]byte(f.Source), f.Number, store.KeepFlush.Microseconds(), int16(store.MetricPart),
			c.classes, c.starts, c.names, c.kinds, c.rolls, c.expires, c.data, c.flushes,
		}}
	}
	if f.Unhurried && len(f.Rows) <= mostAlong && r.workers.Ride(ctx, add()) {
		return nil
	}
	return r.pg.Retry(ctx, "keep metrics", pg.Always, func(ctx context.Context, _ bool) error {
		return r.pg.Send(ctx, r.pg.Upkeep, pg.UpkeepLimits, add())
	})
}
