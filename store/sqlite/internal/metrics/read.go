package metrics

import (
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// readRange reads rows of one width in a range, so many at most, all or those of one
// name or kind. Others come without their data where they come at all: they count
// towards the bound.
func readRange(by, narrow string) string {
	return `SELECT start, name, kind, CASE WHEN (?6 = '' OR name = ?6) AND (?7 = '' OR kind = ?7) THEN data END
	FROM pawl_metric ` + by + `
	WHERE namespace = ?1 AND class = ?2 AND width = ?3` + narrow + ` AND start >= ?4 AND start < ?5
	LIMIT ?8`
}

var (
	readMetrics       = readRange("", "")                                          // the primary key gives the range
	readMetricsOfName = readRange("INDEXED BY pawl_metric_name", " AND name = ?6") // pawl_metric_name gives it, without other names
	readMetricsOfKind = readRange("INDEXED BY pawl_metric_kind", " AND kind = ?7") // pawl_metric_kind, likewise
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

// ReadTexts are the statements that read rows of one name, and of one kind.
func ReadTexts() []string { return []string{readMetricsOfName, readMetricsOfKind} }

// Read adds up the rows of a range, in one snapshot: what is rolled up meanwhile is
// counted once.
func Read(c *lite.Snapshot, q store.MetricQuery) (store.MetricReply, error) {
	sum := store.NewMetricSum(q)
	for _, w := range []store.MetricWidth{store.MetricPart, store.MetricMinute, store.MetricHour} {
		if err := readWidth(c, q, w, sum); err != nil {
			return store.MetricReply{}, err
		}
	}
	return sum.Reply(), nil
}

func readWidth(c *lite.Snapshot, q store.MetricQuery, w store.MetricWidth, sum *store.MetricSum) error {
	from, to := store.MetricRange(q, w)
	name, kind := store.ExactName(q.Name), store.ExactName(q.Kind)
	rows := c.On(readText(name, kind)).Int(int64(q.Class)).Int(int64(w)).Int(lite.Micros(from)).Int(lite.Micros(to)).
		Text(name).Text(kind).Int(store.MaxMetricRows + 1)
	var fault error
	for fault == nil && rows.Step() {
		fault = sum.Add(w, &store.MetricRow{
			Class: q.Class, Start: rows.ColTime(0), Name: rows.ColText(1), Kind: rows.ColText(2), Data: rows.ColBlob(3),
		})
	}
	if err := rows.Done(); err != nil {
		return err
	}
	return fault
}

// lookMetrics says whether something can be rolled up: a seek on pawl_metric_roll.
const lookMetrics = `SELECT EXISTS (
		SELECT 1
		FROM pawl_metric INDEXED BY pawl_metric_roll
		WHERE namespace = ? AND roll IS NOT NULL AND roll <= ?
	)`

// Due says whether something can be rolled up.
func Due(c *lite.Snapshot) (bool, error) {
	n, err := c.On(lookMetrics).Int(c.Clock.Now()).One()
	return n != 0, err
}

// classes are all that this build knows.
var classes = []metric.Class{metric.OfJobs, metric.OfFailures, metric.OfWorkers, metric.OfAll}
