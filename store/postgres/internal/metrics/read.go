package metrics

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// readWidth reads the rows of one width in a range, at most $8 of them, all or those of
// one name or kind. Others come without their data where they come at all: they count
// towards the bound.
func readWidth(width, from, to, narrow string) string {
	return `(
	SELECT width, start, name, kind, CASE WHEN ($6 = '' OR name = $6) AND ($7 = '' OR kind = $7) THEN data END
	FROM pawl.metric
	WHERE namespace = $1 AND class = $2 AND width = ` + width + narrow + ` AND start >= ` + from + ` AND start < ` + to + `
	ORDER BY start
	LIMIT $8
)`
}

// readWidths reads rows of every width in a range, from the beginning of a minute
// ($3) and of an hour ($4) up to $5, of a name ($6) and kind ($7).
// It is one statement, so that what is rolled up meanwhile is counted once.
func readWidths(narrow string) string {
	return readWidth("1", "$3", "$5", narrow) + `
UNION ALL
` + readWidth("2", "$3", "$5", narrow) + `
UNION ALL
` + readWidth("3", "$4", "$5", narrow)
}

var (
	readMetrics       = readWidths("")                              // metric_pkey gives each range
	readMetricsOfName = readWidths(" AND name = $6 AND name >= ''") // metric_name gives each range, without other names
	readMetricsOfKind = readWidths(" AND kind = $7 AND kind >= ''") // metric_kind, likewise
)

// readText is the statement that reads least of what a query asks for.
func readText(name, kind string) string {
	switch {
	case name != "":
		return readMetricsOfName
	case kind != "":
		return readMetricsOfKind
	}
	return readMetrics
}

// Read adds up the rows of a range.
func (r *Room) Read(ctx context.Context, q store.MetricQuery) (store.MetricReply, error) {
	var sum *store.MetricSum
	var fault error
	minute, to := store.MetricRange(q, store.MetricMinute)
	hour, _ := store.MetricRange(q, store.MetricHour)
	name, kind := pg.Legible(store.ExactName(q.Name)), pg.Legible(store.ExactName(q.Kind))
	err := r.pg.Browse(ctx, func() []*pg.Statement {
		sum, fault = store.NewMetricSum(q), nil
		return []*pg.Statement{{
			Text: readText(name, kind),
			Args: []any{r.pg.Namespace, int16(q.Class), minute, hour, to, name, kind, store.MaxMetricRows + 1},
			Each: func(scan pg.Scan) error {
				var width int16
				row := store.MetricRow{Class: q.Class}
				if err := scan(&width, &row.Start, &row.Name, &row.Kind, &row.Data); err != nil || fault != nil {
					return err
				}
				fault = sum.Add(store.MetricWidth(width), &row)
				return nil
			},
		}}
	})
	if err == nil {
		err = fault
	}
	if err != nil {
		return store.MetricReply{}, err
	}
	return sum.Reply(), nil
}
