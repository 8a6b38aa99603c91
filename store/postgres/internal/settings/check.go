package settings

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// CheckRules are the rules of what is declared and set. The tables are small: each is
// looked at whole, by its primary key. Who mends them goes one after the other, and
// makes processes read them again.
var CheckRules = []pg.TableRules{
	{Table: "declaration", Lock: lockRevision, Rules: []pg.Rule{
		{
			Name: "declaration without its version",
			Find: findDeclarations + " AND " + noVersion, // code_version_pkey for each row
			Fix:  pg.Fix{Does: "is not declared any more", SQL: []string{dropDeclaration + " AND " + noVersion, raiseRevision}},
		},
		{
			Name: "declaration cannot be read",
			Find: findDeclarations + " AND " + noObject,
			Fix:  pg.Fix{Does: "is not declared any more", SQL: []string{dropDeclaration + " AND " + noObject, raiseRevision}},
		},
	}},
	{Table: "override", Lock: lockRevision, Rules: []pg.Rule{{
		Name: "override cannot be read",
		Find: `SELECT kind || ' ' || name
	FROM pawl.override
	WHERE namespace = $1 AND ` + noObject,
		Fix: pg.Fix{Does: "is not set any more", SQL: []string{`DELETE FROM pawl.override
WHERE namespace = $1 AND kind || ' ' || name = $2 AND ` + noObject, raiseRevision}},
	}}},
	{Table: "pause", Lock: lockRevision, Rules: []pg.Rule{{
		Name: "pause of an unknown scope",
		Find: `SELECT 'scope ' || scope || ' ' || name
	FROM pawl.pause
	WHERE namespace = $1 AND ` + noScope,
		Fix: pg.Fix{Does: "pauses nothing any more", SQL: []string{`DELETE FROM pawl.pause
WHERE namespace = $1 AND 'scope ' || scope || ' ' || name = $2 AND ` + noScope, raiseRevision}},
	}}},
	{Table: "cool_down", Rules: []pg.Rule{{
		Name: "cool-down of no length",
		Find: `SELECT 'queue ' || queue
	FROM pawl.cool_down
	WHERE namespace = $1 AND ` + noLength,
		Fix: pg.Fix{Does: "is over", SQL: []string{`DELETE FROM pawl.cool_down
WHERE namespace = $1 AND 'queue ' || queue = $2 AND ` + noLength}},
	}}},
	{Table: "code_version", Lock: lockRevision, Rules: []pg.Rule{
		// Versions are ended soon after their last worker was lost, not with it.
		{
			Name: "live version without a live worker",
			Find: findVersions + ` AND v.ended IS NULL AND NOT EXISTS (
		SELECT
		FROM pawl.worker AS w
		WHERE w.namespace = v.namespace
			AND w.owner = v.owner
			AND w.version = v.version
			AND coalesce(w.lost, {now}) >= {now} - $2::bigint * interval '1 microsecond'
	)`,
			Fix: pg.Fix{Does: "has ended, with what it declared", SQL: []string{`UPDATE pawl.code_version
SET ended = {now}
WHERE namespace = $1 AND owner || ' ' || version = $2`, `DELETE FROM pawl.declaration
WHERE namespace = $1 AND owner || ' ' || version = $2`, raiseRevision}},
		},
		{
			Name: "ended version with a live worker",
			Find: findVersions + ` AND v.ended IS NOT NULL AND EXISTS (
		SELECT
		FROM pawl.worker AS w
		WHERE w.namespace = v.namespace
			AND w.owner = v.owner
			AND w.version = v.version
			AND w.lost IS NULL
			AND w.owner <> ''
	)`,
			Fix: pg.Fix{Does: "is live; what it declared comes with its next start", SQL: []string{raiseRevision,
				`UPDATE pawl.code_version
SET ended = NULL, seen = ` + moment + `
WHERE namespace = $1 AND owner || ' ' || version = $2`}},
		},
	}},
}

// What finds and drops rows, by what a fault says of them.
const (
	findDeclarations = `SELECT d.kind || ' ' || d.name || ' of ' || d.owner || ' ' || d.version
	FROM pawl.declaration AS d
	WHERE d.namespace = $1`

	dropDeclaration = `DELETE FROM pawl.declaration AS d
WHERE d.namespace = $1 AND d.kind || ' ' || d.name || ' of ' || d.owner || ' ' || d.version = $2`

	findVersions = `SELECT v.owner || ' ' || v.version
	FROM pawl.code_version AS v
	WHERE v.namespace = $1`

	noVersion = `NOT EXISTS (
		SELECT
		FROM pawl.code_version AS v
		WHERE v.namespace = d.namespace AND v.owner = d.owner AND v.version = d.version
	)`

	// By its first and last byte: older servers cannot be asked whether text is JSON.
	noObject = "(substr(value, 1, 1) <> '{' OR substr(value, length(value), 1) <> '}')"

	noLength = "(until <= since OR throttles < 1)"

	noScope = "(scope NOT BETWEEN 1 AND 3 OR (scope = 3) <> (name = ''))"
)
