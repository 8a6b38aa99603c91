package sqlite

import (
	"database/sql"
	"flag"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/store/internal/table/tabletest"
)

var update = flag.Bool("update", false, "write the list of tables into its page")

// listsAt is where the entries are.
const listsAt = "store/sqlite/internal/<room>/tables.go (or store/sqlite/tables.go)"

// Every table of a new file is listed as it is: its key, and whose bytes each of its
// columns holds.
func TestP6_EveryTableIsListed(t *testing.T) {
	s := open(t, newFile(t))
	for _, finding := range tabletest.Compare(tables, catalogue(t, s.DB()), listsAt) {
		t.Error(finding)
	}
}

func TestP6_ThePageListsEveryTable(t *testing.T) {
	tabletest.ComparePage(t, "../../docs/storage.md", tables, *update)
}

// A table that nobody lists, or a column, is found with what to write where.
func TestP6_AnUnlistedTableIsFound(t *testing.T) {
	s := open(t, newFile(t))
	for _, text := range []string{
		"CREATE TABLE pawl_door (namespace INTEGER NOT NULL, name TEXT NOT NULL, note TEXT, PRIMARY KEY (namespace, name)) STRICT, WITHOUT ROWID",
		"ALTER TABLE pawl_job ADD COLUMN color TEXT",
	} {
		sqlOf(t, s, text)
	}
	got := strings.Join(tabletest.Compare(tables, catalogue(t, s.DB()), listsAt), "\n")
	for _, want := range []string{
		`pawl_door is not listed: add to Tables of the room that owns it, in ` + listsAt,
		`{Name: "pawl_door", Key: []string{"namespace", "name"}, Ours: []string{"note"}`,
		`pawl_job.color holds text or bytes and is not listed: add "color" in the entry of pawl_job`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}

// catalogue reads what SQLite knows of its tables.
func catalogue(t *testing.T, db *sql.DB) (found []tabletest.Found) {
	t.Helper()
	rows := func(text string, args ...any) [][]string {
		t.Helper()
		rows, err := db.QueryContext(t.Context(), text, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		var all [][]string
		for rows.Next() {
			row, to := make([]string, len(columns)), make([]any, len(columns))
			for i := range row {
				to[i] = &row[i]
			}
			if err := rows.Scan(to...); err != nil {
				t.Fatal(err)
			}
			all = append(all, row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, name := range rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name") {
		f := tabletest.Found{Name: name[0], Indexes: map[string][]string{}}
		for _, c := range rows(`SELECT name, type, "notnull", coalesce(dflt_value, ''), pk FROM pragma_table_info(?) ORDER BY cid`, f.Name) {
			alias := c[1] == "INTEGER" && c[4] != "0" && c[2] == "0" // of the row id, which numbers itself
			f.Columns = append(f.Columns, tabletest.Column{
				Name: c[0], Text: c[1] == "TEXT" || c[1] == "BLOB" || c[1] == "ANY", Given: c[2] == "1" && c[3] == "" && !alias, Type: c[1],
			})
		}
		for _, c := range rows("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", f.Name) {
			f.Key = append(f.Key, c[0])
		}
		for _, c := range rows(`SELECT i.name, c.name FROM pragma_index_list(?) AS i, pragma_index_info(i.name) AS c ORDER BY i.name, c.seqno`, f.Name) {
			f.Indexes[c[0]] = append(f.Indexes[c[0]], c[1])
		}
		found = append(found, f)
	}
	return found
}
