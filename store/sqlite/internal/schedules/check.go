package schedules

import "github.com/pawlwork/pawl/store/sqlite/internal/lite"

// CheckRules are the rules of schedules. The table is small: it is looked at whole, by
// its primary key.
var CheckRules = []lite.TableRules{{Table: "pawl_schedule", Rules: []lite.Rule{
	// When it is due nobody can tell: an operator sets it anew.
	{Name: "schedule due again", SQL: `SELECT name
	FROM pawl_schedule
	WHERE namespace = ? AND next <= last`},
	{Name: "schedule out of bounds", SQL: `SELECT name
	FROM pawl_schedule
	WHERE namespace = ? AND (fires < 0 OR skips < 0 OR (fires + skips > 0) <> (last_job IS NOT NULL))`,
		Fix: lite.Fix{Does: "counts from 0", SQL: []string{`UPDATE pawl_schedule
	SET fires = 0, skips = 0, last_job = NULL
	WHERE namespace = ?1 AND name = ?2`}}},
}}}
