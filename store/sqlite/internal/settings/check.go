package settings

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// CheckRules are the rules of what is declared and set. The tables are small: each is
// looked at whole, by its primary key. The SQL finds details of what breaks a rule.
var CheckRules = []lite.Rule{
	{Name: "declaration without its version", SQL: `SELECT
		d.kind || ' ' || d.name || ' of ' || d.owner || ' ' || d.version
	FROM pawl_declaration AS d
	LEFT JOIN pawl_code_version AS v ON v.namespace = d.namespace AND v.owner = d.owner AND v.version = d.version
	WHERE d.namespace = ? AND v.version IS NULL`},
	{Name: "pause of an unknown scope", SQL: `SELECT 'scope ' || scope || ' ' || name
	FROM pawl_pause
	WHERE namespace = ? AND (scope NOT BETWEEN 1 AND 3 OR (scope = 3) <> (name = ''))`},
	{Name: "cool-down of no length", SQL: `SELECT 'queue ' || queue
	FROM pawl_cool_down
	WHERE namespace = ? AND (until <= since OR throttles < 1)`},
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
