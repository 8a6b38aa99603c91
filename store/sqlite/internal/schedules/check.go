package schedules

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// CheckRules are the rules of schedules. The table is small: it is looked at whole, by
// its primary key. The SQL finds details of what breaks a rule.
var CheckRules = []lite.Rule{
	{Name: "schedule due again", SQL: `SELECT name
	FROM pawl_schedule
	WHERE namespace = ? AND next <= last`},
	{Name: "schedule out of bounds", SQL: `SELECT name
	FROM pawl_schedule
	WHERE namespace = ? AND (fires < 0 OR skips < 0 OR (fires + skips > 0) <> (last_job IS NOT NULL))`},
}

// Check finds what breaks the rules, in one snapshot.
func Check(c *lite.Snapshot) (faults []store.Fault, err error) {
	for _, r := range CheckRules {
		q := c.On(r.SQL)
		for q.Step() {
			faults = append(faults, store.Fault{Rule: r.Name, Detail: q.ColText(0)})
		}
		if err := q.Done(); err != nil {
			return nil, err
		}
	}
	return faults, nil
}
