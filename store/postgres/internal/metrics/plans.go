package metrics

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// Plans are the statements of this room, with the indexes that must serve them.
var Plans = []pg.Plan{
	{Name: "readMetrics", Text: readMetrics, Indexes: []string{"metric_pkey"}},
	{Name: "readMetricsOfName", Text: readMetricsOfName, Indexes: []string{"metric_name"}},
	{Name: "readMetricsOfKind", Text: readMetricsOfKind, Indexes: []string{"metric_kind"}},
	{Name: "dueMetrics", Text: dueMetrics, Indexes: []string{"metric_roll"}},
	{Name: "mergedMetrics", Text: mergedMetrics, Indexes: []string{"metric_pkey"}},
	{Name: "dropMetrics", Text: dropMetrics, Indexes: []string{"metric_pkey"}},
	{Name: "checkMetrics", Text: checkMetrics, Indexes: []string{"metric_pkey", "metric_flush_pkey"}},
}
