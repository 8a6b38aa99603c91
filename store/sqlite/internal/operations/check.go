package operations

import "github.com/pawlwork/pawl/store/sqlite/internal/lite"

// CheckRules are the rules of the table of operations, which is walked by its
// primary key.
var CheckRules = []lite.TableRules{
	{Table: "pawl_operation", Key: "id", Rules: []lite.Rule{
		broken("operation without an end", "(state = 1) <> (ended IS NULL) OR (ended IS NULL) <> (expires IS NULL)",
			"has an end if it has ended", `ended = CASE WHEN state <> 1 THEN coalesce(ended, ?3) END,
		expires = CASE WHEN state <> 1 THEN coalesce(expires, ?3 + 604800000000) END`),
		broken("operation miscounted", "looked <> changed + asked + duplicate + busy + unchanged",
			"has looked at what became of something", "looked = changed + asked + duplicate + busy + unchanged"),
	}},
}

func broken(name, condition, does, set string) lite.Rule {
	return lite.Rule{Name: name, SQL: `SELECT id, 'state ' || state || ', ' || looked || ' looked at'
	FROM pawl_operation
	WHERE namespace = ?1 AND id > ?2 AND id <= ?3 AND (` + condition + `)`,
		Fix: lite.Fix{Does: does, SQL: []string{`UPDATE pawl_operation
	SET ` + set + `
	WHERE namespace = ?1 AND id = ?2`}}}
}
