package settings

import "github.com/pawlwork/pawl/store/sqlite/internal/lite"

// CheckRules are the rules of what is declared and set. The tables are small: each is
// looked at whole, by its primary key.
var CheckRules = []lite.TableRules{
	{Table: "pawl_declaration", Rules: []lite.Rule{
		{
			Name: "declaration without its version",
			SQL:  findDeclarations + " AND " + noVersion,
			Fix:  lite.Fix{Does: "is not declared any more", SQL: []string{dropDeclaration + " AND " + noVersion}, Run: raised},
		},
		{
			Name: "declaration cannot be read",
			SQL:  findDeclarations + " AND " + noObject,
			Fix:  lite.Fix{Does: "is not declared any more", SQL: []string{dropDeclaration + " AND " + noObject}, Run: raised},
		},
	}},
	{Table: "pawl_override", Rules: []lite.Rule{{
		Name: "override cannot be read",
		SQL: `SELECT kind || ' ' || name
	FROM pawl_override
	WHERE namespace = ? AND ` + noObject,
		Fix: lite.Fix{Does: "is not set any more", Run: raised, SQL: []string{`DELETE FROM pawl_override
	WHERE namespace = ?1 AND kind || ' ' || name = ?2 AND ` + noObject}},
	}}},
	{Table: "pawl_pause", Rules: []lite.Rule{{
		Name: "pause of an unknown scope",
		SQL: `SELECT 'scope ' || scope || ' ' || name
	FROM pawl_pause
	WHERE namespace = ? AND ` + noScope,
		Fix: lite.Fix{Does: "pauses nothing any more", Run: raised, SQL: []string{`DELETE FROM pawl_pause
	WHERE namespace = ?1 AND 'scope ' || scope || ' ' || name = ?2 AND ` + noScope}},
	}}},
	{Table: "pawl_cool_down", Rules: []lite.Rule{{
		Name: "cool-down of no length",
		SQL: `SELECT 'queue ' || queue
	FROM pawl_cool_down
	WHERE namespace = ? AND ` + noLength,
		Fix: lite.Fix{Does: "is over", SQL: []string{`DELETE FROM pawl_cool_down
	WHERE namespace = ?1 AND 'queue ' || queue = ?2 AND ` + noLength}},
	}}},
	{Table: "pawl_code_version", Rules: []lite.Rule{
		{
			Name: "live version without a live worker",
			SQL: findVersions + ` AND v.ended IS NULL AND NOT EXISTS (
		SELECT 1
		FROM pawl_worker AS w
		WHERE w.namespace = v.namespace AND w.owner = v.owner AND w.version = v.version
			AND coalesce(w.lost, ?2) + ?3 >= ?2)`,
			Fix: lite.Fix{Does: "has ended, with what it declared", Run: raised, SQL: []string{`UPDATE pawl_code_version
	SET ended = ?3
	WHERE namespace = ?1 AND owner || ' ' || version = ?2`, `DELETE FROM pawl_declaration
	WHERE namespace = ?1 AND owner || ' ' || version = ?2`}},
		},
		{
			Name: "ended version with a live worker",
			SQL: findVersions + ` AND v.ended IS NOT NULL AND EXISTS (
		SELECT 1
		FROM pawl_worker AS w INDEXED BY pawl_worker_version
		WHERE w.namespace = v.namespace AND w.owner = v.owner AND w.version = v.version
			AND w.lost IS NULL AND w.owner <> '')`,
			Fix: lite.Fix{Does: "is live; what it declared comes with its next start", Run: raised, SQL: []string{
				`UPDATE pawl_code_version
	SET ended = NULL, seen = ?3
	WHERE namespace = ?1 AND owner || ' ' || version = ?2`}},
		},
	}},
}

// What finds and drops rows, by what a fault says of them.
const (
	findDeclarations = `SELECT kind || ' ' || name || ' of ' || owner || ' ' || version
	FROM pawl_declaration AS d
	WHERE d.namespace = ?`

	dropDeclaration = `DELETE FROM pawl_declaration AS d
	WHERE d.namespace = ?1 AND kind || ' ' || name || ' of ' || owner || ' ' || version = ?2`

	findVersions = `SELECT owner || ' ' || version
	FROM pawl_code_version AS v
	WHERE v.namespace = ?1`

	noVersion = `NOT EXISTS (
		SELECT 1
		FROM pawl_code_version AS v
		WHERE v.namespace = d.namespace AND v.owner = d.owner AND v.version = d.version)`

	noObject = "(NOT json_valid(value) OR json_type(value) <> 'object')"

	noLength = "(until <= since OR throttles < 1)"

	noScope = "(scope NOT BETWEEN 1 AND 3 OR (scope = 3) <> (name = ''))"
)

// raised makes processes read again what is declared and set.
func raised(s *lite.Session, _ []byte) error { return Raise(s) }
