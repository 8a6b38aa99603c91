package metrics

import (
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// readMetrics reads rows of one width in a range, so many at most. Those of other names
// come without their data: they count towards the bound.
//   - The primary key gives the range.
const readMetrics = `SELECT start, name, kind, CASE WHEN (?6 = '' OR name = ?6) AND (?7 = '' OR kind = ?7) THEN data END
	FROM pawl_metric
	WHERE namespace = ?1 AND class = ?2 AND width = ?3 AND start >= ?4 AND start < ?5
	LIMIT ?8`

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
	rows := c.On(readMetrics).Int(int64(q.Class)).Int(int64(w)).Int(lite.Micros(from)).Int(lite.Micros(to)).
		Text(store.ExactName(q.Name)).Text(store.ExactName(q.Kind)).Int(store.MaxMetricRows + 1)
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
