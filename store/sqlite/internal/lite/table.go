package lite

import (
	"strings"

	"github.com/pawlwork/pawl/store/internal/table"
)

// PurgeText removes rows of the namespace (?1) whose time is over by now (?2), at
// most so many (?3).
//   - Expiry.Index of the table finds them, those that go first first.
//   - The primary key removes them.
func PurgeText(t *table.Table) string {
	return remove(t, expired(t)+`
		ORDER BY `+t.Expiry.Column+`
		LIMIT ?3`)
}

// ExpiredText finds a row of the namespace (?1) whose time is over by now (?2).
//   - A seek on Expiry.Index of the table.
func ExpiredText(t *table.Table) string {
	return `SELECT 1
		` + expired(t)
}

func expired(t *table.Table) string {
	when := t.Expiry.Column + " <= ?2"
	if t.Expiry.When != "" {
		when = t.Expiry.When + " AND " + when
	}
	return "FROM " + t.Name + `
		WHERE namespace = ?1 AND ` + when
}

// EraseText removes any rows of the namespace (?1), at most so many (?2).
//   - An index that begins with the namespace finds them, the primary key removes them.
func EraseText(t *table.Table) string {
	return remove(t, "FROM "+t.Name+`
		WHERE namespace = ?1
		LIMIT ?2`)
}

// remove deletes the rows that a query finds, by their keys.
func remove(t *table.Table, found string) string {
	key := strings.Join(t.Key, ", ")
	names := key
	if len(t.Key) > 1 {
		names = "(" + key + ")"
	}
	return "DELETE FROM " + t.Name + `
	WHERE ` + names + ` IN (
		SELECT ` + key + `
		` + found + `)`
}
