package postgres

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/store/internal/table/tabletest"
)

var update = flag.Bool("update", false, "write the list of tables into its page")

// listsAt is where the entries are.
const listsAt = "store/postgres/internal/<room>/room.go (or store/postgres/tables.go)"

// Every table of a new schema is listed as it is: its key, and whose bytes each of
// its columns holds.
func TestP6_EveryTableIsListed(t *testing.T) {
	for _, finding := range tabletest.Compare(tables, catalogue(t, openInternal(t)), listsAt) {
		t.Error(finding)
	}
}

func TestP6_ThePageListsEveryTable(t *testing.T) {
	tabletest.ComparePage(t, "../../docs/postgres.md", tables, *update)
}

// A table that nobody lists, or a column, is found with what to write where.
func TestP6_AnUnlistedTableIsFound(t *testing.T) {
	s := openInternal(t)
	for _, text := range []string{
		"CREATE TABLE pawl.door (namespace int NOT NULL, name text NOT NULL, note text, PRIMARY KEY (namespace, name))",
		"ALTER TABLE pawl.job ADD COLUMN color text[]",
	} {
		if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL(text)); err != nil {
			t.Fatal(err)
		}
	}
	got := strings.Join(tabletest.Compare(tables, catalogue(t, s), listsAt), "\n")
	for _, want := range []string{
		`door is not listed: add to Tables of the room that owns it, in ` + listsAt,
		`{Name: "door", Key: []string{"namespace", "name"}, Ours: []string{"note"}`,
		`job.color holds text or bytes and is not listed: add "color" in the entry of job`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}

// catalogue reads what the server knows of the tables of a schema.
func catalogue(t *testing.T, s *Store) (found []tabletest.Found) {
	t.Helper()
	rows, err := s.pg.Users.Query(t.Context(), `SELECT c.table_name, c.column_name, c.udt_name::text,
		c.is_nullable = 'NO' AND c.column_default IS NULL AND c.is_identity = 'NO' AND c.is_generated = 'NEVER'
	FROM information_schema.columns AS c
	JOIN information_schema.tables AS t USING (table_schema, table_name)
	WHERE c.table_schema = $1 AND t.table_type = 'BASE TABLE'
	ORDER BY c.table_name, c.ordinal_position`, s.options.Schema)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	texts := []string{"text", "varchar", "bpchar", "name", "bytea", "json", "jsonb", "xml"}
	for rows.Next() {
		var name string
		var c tabletest.Column
		if err := rows.Scan(&name, &c.Name, &c.Type, &c.Given); err != nil {
			t.Fatal(err)
		}
		c.Text = slices.Contains(texts, strings.TrimPrefix(c.Type, "_")) // an array begins so
		if n := len(found); n == 0 || found[n-1].Name != name {
			found = append(found, tabletest.Found{Name: name, Indexes: map[string][]string{}})
		}
		f := &found[len(found)-1]
		f.Columns = append(f.Columns, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	rows, err = s.pg.Users.Query(t.Context(), `SELECT t.relname, i.relname, x.indisprimary, array(
			SELECT a.attname::text
			FROM unnest(x.indkey) WITH ORDINALITY AS k (attnum, n)
			JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.attnum
			ORDER BY k.n)
	FROM pg_index AS x
	JOIN pg_class AS t ON t.oid = x.indrelid
	JOIN pg_class AS i ON i.oid = x.indexrelid
	JOIN pg_namespace AS n ON n.oid = t.relnamespace
	WHERE n.nspname = $1`, s.options.Schema)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, index string
		var primary bool
		var columns []string
		if err := rows.Scan(&name, &index, &primary, &columns); err != nil {
			t.Fatal(err)
		}
		f := &found[slices.IndexFunc(found, func(f tabletest.Found) bool { return f.Name == name })]
		f.Indexes[index] = columns
		if primary {
			f.Key = columns
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
