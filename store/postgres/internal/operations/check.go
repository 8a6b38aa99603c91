package operations

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// CheckRules are the rules of the table of operations.
//
//   - operation_pkey gives the stretch.
var CheckRules = []pg.TableRules{{Table: "operation", Key: "id", Rules: []pg.Rule{
	row("operation without an end", "(p.state = 1) <> (p.ended IS NULL) OR (p.ended IS NULL) <> (p.expires IS NULL)",
		"has an end if it has ended", `ended = CASE WHEN state <> 1 THEN coalesce(ended, {now}) END,
	expires = CASE WHEN state <> 1 THEN coalesce(expires, {now} + interval '7 days') END`),
	row("operation miscounted", "p.looked <> p.changed + p.asked + p.duplicate + p.busy + p.unchanged",
		"has looked at what became of something", "looked = changed + asked + duplicate + busy + unchanged"),
}}}

// checkOperations is the statement that looks.
var checkOperations = CheckRules[0].Text()

// row is a rule of one operation: broken is the condition that it must not meet.
func row(name, broken, does, set string) pg.Rule {
	return pg.Rule{Name: name, Find: `SELECT p.id, 'state ' || p.state || ', ' || p.looked || ' looked at'
	FROM part AS p
	WHERE ` + broken, Fix: pg.Fix{Does: does, SQL: []string{`UPDATE pawl.operation
SET ` + set + `
WHERE namespace = $1 AND id = $2`}}}
}
