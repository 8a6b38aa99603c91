package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/internal/table/tabletest"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Whatever a namespace has in any table, nothing of it is left, and another one
// keeps all it has. Rows are made from the catalogue: a table that comes later is
// filled too.
func TestJ29_ErasedFromEveryTable(t *testing.T) {
	s := open(t, newFile(t))
	const rows, other = 3, 77
	found := catalogue(t, s.DB())
	listed := table.InNamespace(tables)
	for _, f := range found {
		if !slices.ContainsFunc(listed, func(l table.Table) bool { return l.Name == f.Name }) {
			continue
		}
		for i := range rows {
			sqlOf(t, s, rowOf(f, s.namespace, i))
			sqlOf(t, s, rowOf(f, other, i))
		}
	}
	count := func(name string, namespace int64) (n int) {
		t.Helper()
		if err := s.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM "+name+" WHERE namespace = ?", namespace).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	had := map[string]int{}
	for _, l := range listed {
		if had[l.Name] = count(l.Name, s.namespace); had[l.Name] == 0 || count(l.Name, other) != had[l.Name] {
			t.Fatalf("%s was not filled", l.Name)
		}
	}
	for more, calls := true, 0; more; calls++ {
		n, again, err := s.Erase(t.Context(), 4)
		if err != nil || n > 4 || calls > 100 {
			t.Fatal(n, again, err)
		}
		more = again
	}
	for _, l := range listed {
		if n := count(l.Name, s.namespace); n != 0 {
			t.Errorf("%d rows of %s are left", n, l.Name)
		}
		if n := count(l.Name, other); n != had[l.Name] {
			t.Errorf("another namespace has %d rows of %s left, want %d", n, l.Name, had[l.Name])
		}
	}
	// Nobody knows that other namespace yet, and Check says so of every table.
	for _, step := range []int{1, 100} {
		report, err := s.Check(t.Context(), store.Check{Step: step})
		if err != nil || len(report.Faults) != len(listed) {
			t.Errorf("check in steps of %d: %+v, %v, want a fault of each of the %d tables", step, report.Faults, err, len(listed))
		}
	}
	sqlOf(t, s, fmt.Sprintf("INSERT INTO pawl_namespace (id, name) VALUES (%d, 'other')", other))
}

// rowOf makes a row that differs from others in every column it must have.
func rowOf(f tabletest.Found, namespace int64, i int) string {
	var names, values []string
	for _, c := range f.Columns {
		if !c.Given {
			continue
		}
		names = append(names, `"`+c.Name+`"`)
		switch {
		case c.Name == "namespace":
			values = append(values, fmt.Sprint(namespace))
		case c.Type == "TEXT":
			values = append(values, fmt.Sprintf("'text %d'", i))
		case c.Type == "BLOB":
			values = append(values, fmt.Sprintf("x'%032x'", i+1))
		default:
			values = append(values, fmt.Sprint(i+1))
		}
	}
	// pawl_alone has one row in a namespace.
	return "INSERT OR IGNORE INTO " + f.Name + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
}

// What an erasure removes is found and removed by indexes: it does not read what
// other namespaces have. Nor does the check for rows of no namespace.
func TestP10_ErasureSeeks(t *testing.T) {
	s := open(t, newFile(t))
	for _, l := range table.InNamespace(tables) {
		for _, text := range []string{lite.EraseText(&l), jobs.StrayText(&l)} {
			q := s.writer.conn.Once("EXPLAIN QUERY PLAN " + text)
			for q.Step() {
				if step := q.ColText(3); strings.HasPrefix(step, "SCAN") && step != "SCAN seen" && step != "SCAN CONSTANT ROW" || strings.Contains(step, "TEMP B-TREE") {
					t.Errorf("%s\nin %s", step, text)
				}
			}
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// An erasure that was killed is in pieces: whatever is left goes with the next one.
func TestJ29_ARefusedTransactionLeavesNothingHalfDone(t *testing.T) {
	s := open(t, newFile(t))
	s.mustEnqueue(t, drafts(5)...)
	sqlOf(t, s, "CREATE TRIGGER refuse BEFORE DELETE ON pawl_job WHEN (SELECT count(*) FROM pawl_job) < 4 BEGIN SELECT RAISE(ABORT, 'no'); END")
	if n, more, err := s.Erase(t.Context(), 10); err == nil || n != 0 || more {
		t.Fatal(n, more, err)
	}
	if n := s.mustCount(t); n != 5 {
		t.Errorf("%d jobs are left, want all 5", n)
	}
	if r, err := s.Check(t.Context(), store.Check{}); err != nil || len(r.Faults) > 0 {
		t.Errorf("check: %+v, %v", r, err)
	}
	sqlOf(t, s, "DROP TRIGGER refuse")
	if n, more, err := s.Erase(t.Context(), 10); err != nil || n != 5 || !more {
		t.Fatal(n, more, err)
	}
}
