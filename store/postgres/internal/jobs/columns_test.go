package jobs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/job"
)

var (
	tableBody    = regexp.MustCompile(`(?s)CREATE TABLE pawl\.(job|job_archive) \((.*?)\n\)`)
	columnLine   = regexp.MustCompile(`(?m)^    ([a-z_]+) +([a-z]+(?:\[\])?)[ ,]`)
	addedColumns = regexp.MustCompile(`ALTER TABLE pawl\.(job|job_archive) ADD COLUMN ([a-z_]+) +([a-z]+(?:\[\])?)`)
)

// schemaColumns are the columns of both tables, as the migrations make them.
func schemaColumns(t *testing.T) map[string]map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../schema/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migrations %q: %v", files, err)
	}
	found := map[string]map[string]string{"job": {}, "job_archive": {}}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range tableBody.FindAllStringSubmatch(string(text), -1) {
			for _, c := range columnLine.FindAllStringSubmatch(table[2], -1) {
				found[table[1]][c[1]] = c[2]
			}
		}
		for _, c := range addedColumns.FindAllStringSubmatch(string(text), -1) {
			found[c[1]][c[2]] = c[3]
		}
	}
	return found
}

// A column of the schema that the table of columns does not name would be lost
// when a job ends.
func TestColumns_AreThoseOfTheSchema(t *testing.T) {
	want := schemaColumns(t)
	for table, in := range map[string]where{"job": inJob, "job_archive": inArchive} {
		got := map[string]string{}
		for _, c := range columns {
			if c.in&in != 0 {
				got[c.name] = c.kind
			}
		}
		if !maps.Equal(got, want[table]) {
			t.Errorf("columns of %s are\n%v, want those of the schema:\n%v", table, got, want[table])
		}
	}
}

// What both tables have goes along when a job ends, but for the columns that the
// statements write by themselves.
func TestColumns_OfBothTablesGoAlong(t *testing.T) {
	var stay []string
	for _, c := range columns {
		if c.in&inBoth == inBoth && c.in&goesAlong == 0 {
			stay = append(stay, c.name)
		}
		if c.in&goesAlong != 0 && c.in&inBoth != inBoth {
			t.Errorf("%s goes along, and is not in both tables", c.name)
		}
	}
	if want := []string{"namespace", "id", "state", "reason", "worker"}; !slices.Equal(stay, want) {
		t.Errorf("%q stay behind, want %q", stay, want)
	}
}

func TestColumns_AChangeOfNoneIsRefused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a statement could change a column that does not go along")
		}
	}()
	carriedFrom("job.", map[string]string{"colour": "NULL"})
}

// Every column that is selected is read, and what comes behind them is next.
func TestColumns_AreReadInTheirOrder(t *testing.T) {
	for _, list := range []struct {
		columns string
		read    func(*RowReader, [][]byte, *job.Job) error
	}{
		{LiveColumns, (*RowReader).Job},
		{ArchivedColumns, (*RowReader).Job},
		{TakenColumns, (*RowReader).Taken},
	} {
		n := len(strings.Split(strings.NewReplacer(", 0)", ")").Replace(list.columns), ", "))
		cols := make([][]byte, n+1)
		cols[n] = []byte{0, 0, 0, 0, 0, 0, 0, 9}
		var r RowReader
		var j job.Job
		if err := list.read(&r, cols, &j); err != nil {
			t.Fatal(err)
		}
		if next := r.Int8(); next != 9 {
			t.Errorf("behind %s comes %d, want 9", list.columns, next)
		}
	}
}
