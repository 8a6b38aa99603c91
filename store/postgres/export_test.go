package postgres

import "strings"

// Listening is what Open returns where the store listens, for tests outside of the
// package that stand in front of it.
type Listening = listening

// Emptying removes all rows of a schema, and the tables that cases of the suite make: the
// next case opens it as a new database.
var Emptying = func() string {
	var b strings.Builder
	b.WriteString("DROP TABLE IF EXISTS pawl_effect, storetest_order;\n")
	for _, t := range tables {
		if t.Name != "version" {
			b.WriteString("DELETE FROM " + t.Name + ";\n")
		}
	}
	return b.String()
}()
