package pg

import (
	"strings"

	"github.com/pawlwork/pawl/store/internal/table"
)

// PurgeText removes rows of the namespace ($1) whose time is over, at most so many
// ($2), without waiting for anybody.
//
//   - Expiry.Index of the table finds them, those that go first first.
func PurgeText(t *table.Table) string {
	return "DELETE FROM pawl." + t.Name + `
WHERE ctid = ANY (ARRAY(
	SELECT ctid
	` + expired(t) + `
	LIMIT $2
	FOR UPDATE SKIP LOCKED
))`
}

// ExpiredText finds a row of the namespace ($1) whose time is over. The order is
// what chooses the index: EXISTS would have the planner take any that begins with
// the namespace.
//
//   - A seek on Expiry.Index of the table.
func ExpiredText(t *table.Table) string {
	return `SELECT 1
	` + expired(t) + `
	LIMIT 1`
}

func expired(t *table.Table) string {
	e := t.Expiry
	when := e.Column + " <= {now}"
	if e.When != "" {
		when = e.When + " AND " + when
	}
	return "FROM pawl." + t.Name + `
	WHERE namespace = $1 AND ` + when + `
	ORDER BY ` + e.Column
}

// EraseText removes any rows of the namespace ($1), at most so many ($2).
//
//   - The index of the key finds them, which the order chooses.
func EraseText(t *table.Table) string {
	order := strings.Join(t.Key, ", ")
	return "DELETE FROM pawl." + t.Name + `
WHERE ctid = ANY (ARRAY(
	SELECT ctid
	FROM pawl.` + t.Name + `
	WHERE namespace = $1
	ORDER BY ` + order + `
	LIMIT $2
	FOR UPDATE
))`
}
