package metrics

import (
	"math"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// CheckRules are the rules of metrics, which are left to people: nobody can tell what was
// measured.
var CheckRules = []lite.TableRules{{
	Table: "pawl_metric", Own: Check,
	Rules: []lite.Rule{{Name: rules[0].Name}, {Name: rules[1].Name}, {Name: rules[2].Name}},
}}

// rules are what breaks them. Parameters are the namespace (?1), class (?2),
// width (?3) and the stretch: after one start (?4) and up to another (?5).
//   - The primary key gives the stretch; the flush and the hour of each row are seeks.
var rules = []lite.Rule{
	broken("metric out of bounds", `
		m.start % (CASE m.width WHEN 3 THEN 3600 ELSE 60 END * 1000000) <> 0 OR (m.roll IS NULL) <> (m.width = 3)`),
	broken("metric without its flush", `m.width = 1 AND NOT EXISTS (
			SELECT 1
			FROM pawl_metric_flush AS f
			WHERE f.namespace = m.namespace AND f.source = m.source AND f.number >= m.flush)`),
	broken("metric in two places", `m.width = 2 AND m.source = zeroblob(16) AND EXISTS (
			SELECT 1
			FROM pawl_metric AS h
			WHERE h.namespace = m.namespace AND h.class = m.class AND h.width = 3
				AND h.start = m.start - m.start % 3600000000 AND h.name = m.name AND h.kind = m.kind
				AND h.source = m.source AND h.flush = 0)`),
}

func broken(name, condition string) lite.Rule {
	return lite.Rule{Name: name, SQL: `SELECT
		'class ' || m.class || ', width ' || m.width || ', ' || m.start || ', ' || m.name || ' ' || m.kind
	FROM pawl_metric AS m
	WHERE m.namespace = ?1 AND m.class = ?2 AND m.width = ?3 AND m.start > ?4 AND m.start <= ?5
		AND (` + condition + `)`}
}

// stretchEnd is the start of the last of some rows, by the primary key.
const stretchEnd = `SELECT max(start), count(*)
	FROM (
		SELECT start
		FROM pawl_metric
		WHERE namespace = ? AND class = ? AND width = ? AND start > ?
		ORDER BY start
		LIMIT ?)`

// Check looks through all rows, each stretch of which is one call of read, in a
// snapshot of its own.
func Check(step int, read func(func(*lite.Snapshot) error) error) (faults []store.Fault, err error) {
	for _, class := range classes {
		for width := store.MetricPart; width <= store.MetricHour; width++ {
			last := int64(math.MinInt64)
			for more := true; more; {
				var found []store.Fault
				err := read(func(c *lite.Snapshot) error {
					found = nil
					after := last
					q := c.On(stretchEnd).Int(int64(class)).Int(int64(width)).Int(after).Int(int64(step))
					if more = q.Step() && q.ColInt(1) > 0; more {
						last = q.ColInt(0)
					}
					if err := q.Done(); err != nil || !more {
						return err
					}
					for _, r := range rules {
						q := c.On(r.SQL).Int(int64(class)).Int(int64(width)).Int(after).Int(last)
						for q.Step() {
							found = append(found, store.Fault{Rule: r.Name, Detail: q.ColText(0)})
						}
						if err := q.Done(); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return nil, err
				}
				faults = append(faults, found...)
			}
		}
	}
	return faults, nil
}
