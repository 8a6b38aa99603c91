package schedules

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// CheckRules are the rules of schedules. The table is small: it is looked at whole
// (schedule_pkey).
var CheckRules = []pg.TableRules{{Table: "schedule", Rules: []pg.Rule{
	// When it is due nobody can tell: an operator sets it anew.
	{Name: "schedule due again", Find: `SELECT name
	FROM pawl.schedule
	WHERE namespace = $1 AND next <= last`},
	{Name: "schedule out of bounds", Find: `SELECT name
	FROM pawl.schedule
	WHERE namespace = $1 AND (fires < 0 OR skips < 0 OR (fires + skips > 0) <> (last_job IS NOT NULL))`,
		Fix: pg.Fix{Does: "counts from 0", SQL: []string{`UPDATE pawl.schedule
SET fires = 0, skips = 0, last_job = NULL
WHERE namespace = $1 AND name = $2`}}},
}}}
