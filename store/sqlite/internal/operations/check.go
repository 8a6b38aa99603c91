package operations

import "github.com/pawlwork/pawl/store/sqlite/internal/lite"

// CheckRules are the rules of the table of operations, which is walked by its
// primary key.
var CheckRules = []lite.TableRules{
	{Table: "pawl_operation", Key: "id", Rules: []lite.Rule{
		broken("operation without an end", "(state = 1) <> (ended IS NULL) OR (ended IS NULL) <> (expires IS NULL)"),
		broken("operation miscounted", "looked <> changed + asked + duplicate + busy + unchanged"),
	}},
}

func broken(name, condition string) lite.Rule {
	return lite.Rule{Name: name, SQL: `SELECT id, 'state ' || state || ', ' || looked || ' looked at'
	FROM pawl_operation
	WHERE namespace = ?1 AND id > ?2 AND id <= ?3 AND ?4 + ?5 > 0 AND (` + condition + `)`}
}
