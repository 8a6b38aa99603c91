package metrics

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// The rules of P6 about metrics. Their names are those of every store.
const (
	outOfBounds  = "metric out of bounds"
	withoutFlush = "metric without its flush"
	inTwoPlaces  = "metric in two places"
)

// CheckRules are the rules of metrics, which are left to people: nobody can tell what was
// measured.
func CheckRules(r *Room) []pg.TableRules {
	return []pg.TableRules{{
		Table: "metric", Rules: []pg.Rule{{Name: outOfBounds}, {Name: withoutFlush}, {Name: inTwoPlaces}}, Own: r.Check,
	}}
}

// checkMetrics finds what breaks them among rows of a class ($2) and width ($3) after
// one start ($4): so many ($5), and the rest of the last start.
//
//   - metric_pkey gives the stretch, and the hour of each row; metric_flush_pkey its flush.
const checkMetrics = `WITH stretch AS MATERIALIZED (
	SELECT max(s.start) AS last
	FROM (
		SELECT start
		FROM pawl.metric
		WHERE namespace = $1 AND class = $2 AND width = $3 AND start > $4
		ORDER BY start
		LIMIT $5
	) AS s
)
SELECT m.start, CASE
	WHEN m.start <> date_trunc(CASE m.width WHEN 3 THEN 'hour' ELSE 'minute' END, m.start, 'UTC')
		OR (m.roll IS NULL) <> (m.width = 3) THEN
		'` + outOfBounds + `'
	WHEN m.width = 1 AND NOT EXISTS (
		SELECT
		FROM pawl.metric_flush AS f
		WHERE f.namespace = $1 AND f.source = m.source AND f.number >= m.flush
	) THEN
		'` + withoutFlush + `'
	WHEN m.width = 2 AND m.source = '00000000-0000-0000-0000-000000000000' AND EXISTS (
		SELECT
		FROM pawl.metric AS h
		WHERE h.namespace = $1
			AND h.class = m.class
			AND h.width = 3
			AND h.start = date_trunc('hour', m.start, 'UTC')
			AND h.name = m.name
			AND h.kind = m.kind
			AND h.source = m.source
	) THEN
		'` + inTwoPlaces + `'
	ELSE
		''
END, 'class ' || m.class || ', width ' || m.width || ', ' || m.start || ', ' || m.name || ' ' || m.kind
FROM stretch
JOIN pawl.metric AS m ON m.namespace = $1 AND m.class = $2 AND m.width = $3 AND m.start > $4 AND m.start <= stretch.last
ORDER BY m.start`

// Check adds what is broken to a report.
func (r *Room) Check(ctx context.Context, step int, report *store.CheckReport) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	for _, class := range classes {
		for width := store.MetricPart; width <= store.MetricHour; width++ {
			last := time.Unix(0, 0)
			for more := true; more; {
				reached, found := last, []store.Fault(nil)
				err := r.pg.Retry(ctx, "check", pg.Reading, func(ctx context.Context, _ bool) error {
					more, found = false, nil
					return r.pg.Send(ctx, r.pg.Reading, pg.UpkeepLimits, &pg.Statement{
						Text: checkMetrics, Args: []any{r.pg.Namespace, int16(class), int16(width), last, step},
						Each: func(scan pg.Scan) error {
							var f store.Fault
							err := scan(&reached, &f.Rule, &f.Detail)
							if f.Rule != "" {
								found = append(found, f)
							}
							more = true
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
		}
	}
	return nil
}
