package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"testing"
)

// mostFiles is how many files a room of a store may have, tests aside: past that it holds two things.
const mostFiles = 20

// countRooms counts the files of each room, tests aside.
func countRooms(files []file) map[string]int {
	rooms := map[string]int{}
	for _, f := range files {
		if ok, _ := path.Match("store/*/internal/*", f.dir()); ok && f.syntax != nil && !f.test() {
			rooms[f.dir()]++
		}
	}
	return rooms
}

func TestRooms_AreSmall(t *testing.T) {
	rooms := countRooms(tree(t))
	if len(rooms) == 0 {
		t.Fatal("no rooms found: the rule would hold for want of anything to count")
	}
	for room, files := range rooms {
		if files > mostFiles {
			t.Errorf("%s has %d files, want at most %d", room, files, mostFiles)
		}
	}
}

// ownTable is how SQL names a table of ours.
var ownTable = regexp.MustCompile(`(?i)\b(from|into|update|join|table)\s+pawl[_.]\w`)

// checkTables finds a table of ours named in a package that is for any: store/*/internal/lite and pg.
func checkTables(f file) []string {
	stem := path.Base(f.dir())
	if ok, _ := path.Match("store/*/internal/*", f.dir()); !ok || f.test() || stem != "lite" && stem != "pg" {
		return nil
	}
	var findings []string
	for node := range ast.Preorder(f.syntax) {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING && ownTable.MatchString(literal.Value) {
			findings = append(findings, fmt.Sprintf("%s: names a table of ours, which belongs to a room", f.at(literal.Pos())))
		}
	}
	return findings
}

func TestRooms_TheDatabaseNamesNoTable(t *testing.T) { holds(t, checkTables) }

func TestRooms_RuleCatches(t *testing.T) {
	const names = "package x\nconst q = `SELECT 1 FROM pawl_job`\n"
	finds(t, checkTables(mustParse(t, "store/sqlite/internal/lite/x.go", names)), "x.go:2: names a table")
	finds(t, checkTables(mustParse(t, "store/postgres/internal/pg/x.go", "package x\nconst q = `DELETE FROM pawl.hint`\n")), "x.go:2: names a table")
	finds(t, checkTables(mustParse(t, "store/postgres/internal/pg/x.go", "package x\nvar q = `DELETE FROM pawl.` + t.Name\n"))) // any of the list
	finds(t, checkTables(mustParse(t, "store/sqlite/internal/jobs/x.go", names)))
	finds(t, checkTables(mustParse(t, "store/sqlite/internal/lite/x_test.go", names)))
}
